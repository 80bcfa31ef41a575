//! Integration tests of the dialects.
