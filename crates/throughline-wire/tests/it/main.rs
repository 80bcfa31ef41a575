//! Integration tests of the dialects.

mod goldens;
mod laws;
mod pains;
mod pretty;
