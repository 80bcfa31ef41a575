//! The three dialects.
