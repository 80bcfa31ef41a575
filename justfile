# Runs what follows with a PostgreSQL of its own.
with_postgres := "crates/throughline-store/tests/postgres/run"

# Everything a change must pass.
check:
    ./test

test *args:
    {{ with_postgres }} cargo nextest run --workspace {{ args }}
    cargo test --workspace --doc

fmt:
    cargo fmt --all

lint:
    cargo clippy --workspace --all-targets -- -D warnings

deny:
    cargo deny check bans licenses sources

# Looks for known vulnerabilities in what we depend on; fetches their database.
advisories:
    cargo deny check advisories

# Writes a bill of materials: what ships, with licenses and checksums.
sbom:
    deploy/sbom > target/throughline.cdx.json

# Makes the packages of a release from an optimised build: tarball, Debian package, wheel, npm package, image.
dist *args:
    deploy/dist {{ args }}

# Makes the packages from the program as it is built for tests, installs each and runs the demo.
dist-test:
    deploy/tests/run

# Rewrites the golden outputs. Read the diff before you commit it.
golden-update:
    INSTA_UPDATE=always cargo test -p throughline-wire --test it
    git diff --stat -- crates/throughline-wire/tests

# Tries the laws (property tests) on cases that nobody tried yet, again and again; a failure names its seed.
laws rounds="20":
    #!/usr/bin/env bash
    set -euo pipefail
    for _ in $(seq {{ rounds }}); do
        export PROPTEST_RNG_SEED=$RANDOM$RANDOM
        echo "seed $PROPTEST_RNG_SEED"
        cargo nextest run --cargo-quiet --status-level fail --no-fail-fast -p throughline-core -p throughline-wire \
            -p throughline-store -p throughline-tools -p throughline-carry -p throughline-tokens
    done

golden := "crates/throughline-wire/tests/golden"

# Fuzzes one target (sse, json, chat, messages, responses, streams, frames, ledger, patch, sessions), with the golden files as
# seeds; needs cargo-fuzz and a nightly toolchain. Nothing here is unsafe, so no sanitizer is needed.
fuzz target seconds="60":
    mkdir -p fuzz/corpus/{{ target }}
    cargo +nightly fuzz run --sanitizer none {{ target }} fuzz/corpus/{{ target }} \
        {{ if target =~ "^(chat|messages|responses)$" { golden / "requests" / target } else { "" } }} \
        {{ if target == "json" { golden / "requests" } else { "" } }} \
        {{ if target =~ "^(sse|streams)$" { golden / "streams" } else { "" } }} \
        -- -max_total_time={{ seconds }} -timeout=10 -rss_limit_mb=2048

# Prints ratios: requests, streams and memory against serde_json, and the next plan against the first.
bench *args:
    cargo bench -p throughline-core --bench plan {{ args }}
    {{ with_postgres }} cargo bench -p throughline-store --bench flat {{ args }}
    cargo bench -p throughline-gateway --bench turns {{ args }}
    cargo bench -p throughline-wire --bench translate --bench streams --bench memory {{ args }}

# What the gateway costs beside bare proxies, in one run; words choose sections ("1 KB", agent, burst, curve, memory).
bench-gateway *args:
    cargo bench -p throughline --bench gateway -- {{ args }}

# Three replicas over one PostgreSQL while everything goes wrong, for some minutes; as root with a full disk, too.
soak minutes="3":
    crates/throughline/tests/soak {{ minutes }}

# Measures compaction on recorded runs, one Chat Completions conversation on each line; see docs/compaction.md.
eval-compaction *args:
    cargo run --quiet --release -p throughline-eval -- {{ args }}
