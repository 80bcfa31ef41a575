//! Patterns of secrets that are recognised by their form. Where a name or a scheme stands before one, only the secret
//! itself goes: the group called `secret`.
//!
//! A pattern holds no quotes and no backslashes, so that what it finds in a string of JSON ends within that.

/// Names and patterns, in the order in which they are applied: the more particular come first.
pub const SECRETS: [(&str, &str); 12] = [
    (
        "private-key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----",
    ),
    ("aws-key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("aws-secret", r#"(?i)aws_?secret_?(?:access_?)?key["']?\s*[=:]\s*["']?(?<secret>[A-Za-z0-9/+]{40})"#),
    ("github", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})\b"),
    ("anthropic", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    (
        "openai",
        r"\bsk-(?:[a-z]{2,8}-)?[A-Za-z0-9_]*[0-9][A-Za-z0-9_-]{19,}|\bsk-(?:proj|svcacct|admin|or)-[A-Za-z0-9_-]{20,}",
    ),
    ("google", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("slack", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|https://hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
    ("stripe", r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("bearer", r"(?i)\bbearer\s+(?<secret>[A-Za-z0-9._~+/-]{20,}=*)"),
    ("url-password", r#"\b[a-z][a-z0-9+.-]*://[^\s/:@"'\\]*:(?<secret>[^\s/@"'\\]+)@"#),
];
