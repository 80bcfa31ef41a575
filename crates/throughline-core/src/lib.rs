//! The canonical model.
pub mod text;
pub use text::Text;
