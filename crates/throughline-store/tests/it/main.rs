//! Integration tests of the store.
