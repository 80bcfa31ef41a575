//! Integration tests of the testkit: the house rules, run as tests.

mod tidy;
