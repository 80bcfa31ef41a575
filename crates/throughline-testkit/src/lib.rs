//! For tests only: the providers' rules, and the house rules as tests.

pub use throughline_validate as validate;
