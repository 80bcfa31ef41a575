# Everything a change must pass.
check:
    ./test

test *args:
    cargo nextest run --workspace {{ args }}
    cargo test --workspace --doc

fmt:
    cargo fmt --all

lint:
    cargo clippy --workspace --all-targets -- -D warnings

deny:
    cargo deny check bans licenses sources

# Rewrites the golden outputs. Read the diff before you commit it.
golden-update:
    INSTA_UPDATE=always cargo test -p throughline-wire --test it
    git diff --stat -- crates/throughline-wire/tests

# Fuzzes one target (sse, chat, messages, responses, ledger); needs cargo-fuzz and a nightly toolchain.
fuzz target seconds="60":
    cargo +nightly fuzz run {{ target }} -- -max_total_time={{ seconds }}

bench *args:
    cargo bench -p throughline-wire --bench translate {{ args }}
