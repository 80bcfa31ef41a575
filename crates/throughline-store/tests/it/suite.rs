//! What every store promises. Each case is run over each of them.

mod compaction;
mod entries;
mod exchanges;
mod filter;
mod prune;
mod search;
mod standing;

/// Makes a test of each case for each store.
macro_rules! over_every_store {
    ($($case:ident),+ $(,)?) => {
        mod memory {
            $(#[test]
            fn $case() {
                let store = std::sync::Arc::new(throughline_store::Memory::new());
                crate::fixtures::run(super::$case(store));
            })+
        }

        mod sqlite {
            $(#[test]
            fn $case() {
                let folder = crate::fixtures::Folder::new(concat!(module_path!(), "-", stringify!($case)));
                let store = std::sync::Arc::new(crate::fixtures::open(&folder.database()));
                crate::fixtures::run(super::$case(store));
            })+
        }

        mod postgres {
            $(#[test]
            fn $case() {
                let schema = crate::fixtures::Schema::new(concat!(module_path!(), "-", stringify!($case)));
                let Some(schema) = schema else { return };
                let store = std::sync::Arc::new(schema.open());
                crate::fixtures::run(super::$case(store));
            })+
        }
    };
}
use over_every_store;
