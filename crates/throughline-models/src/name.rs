//! The many spellings of a model's name.

/// Vendors as OpenRouter and other gateways write them before a slash, and the providers that they are.
const VENDORS: &[(&str, &str)] = &[
    ("anthropic", "anthropic"),
    ("openai", "openai"),
    ("google", "gemini"),
    ("deepseek", "deepseek"),
    ("mistralai", "mistral"),
    ("moonshotai", "moonshot"),
    ("z-ai", "zai"),
    ("x-ai", "xai"),
];

/// Endings that name a release and not another model.
const RELEASES: &[&str] = &["-latest", "-preview", "-exp"];

/// Returns the provider that a vendor before the name stands for.
pub(crate) fn vendor(name: &str) -> Option<&'static str> {
    let (vendor, _) = name.rsplit_once('/')?;
    let vendor = vendor.rsplit('/').next().unwrap_or(vendor);
    VENDORS.iter().find(|(theirs, _)| vendor.eq_ignore_ascii_case(theirs)).map(|(_, ours)| *ours)
}

/// Returns a name without vendor, region and tag, in lower case, with `-` for `.` and `@`.
pub(crate) fn canonical(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.rsplit_once("anthropic.").map_or(name, |(_, rest)| rest);
    let name = name.split(':').next().unwrap_or(name);
    name.trim().to_ascii_lowercase().replace(['.', '@'], "-")
}

/// Returns the names to look for, the most exact first.
pub(crate) fn spellings(name: &str) -> Vec<String> {
    let mut names = vec![canonical(name)];
    while let Some(shorter) = names.last().and_then(|name| shortened(name)) {
        names.push(shorter);
    }
    names
}

/// Returns a name without the date at its end.
pub(crate) fn undated(name: &str) -> Option<String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (rest, last) = name.rsplit_once('-')?;
    if last.len() == 8 && last.starts_with("20") && digits(last) {
        return Some(rest.to_owned());
    }
    let mut parts = name.rsplitn(4, '-');
    let (day, month, year, rest) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_date = day.len() == 2 && month.len() == 2 && year.len() == 4 && year.starts_with("20");
    (is_date && [day, month, year].into_iter().all(digits)).then(|| rest.to_owned())
}

/// Says whether a pattern with `*` at its end, or none, fits a canonical name.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

fn shortened(name: &str) -> Option<String> {
    // Bedrock numbers the releases of a model behind its date.
    let release = RELEASES.iter().chain(&["-v1", "-v2"]).find_map(|release| name.strip_suffix(release));
    release.map(str::to_owned).or_else(|| undated(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dates_are_told_from_versions() {
        assert_eq!(undated("gpt-5-2025-08-07").as_deref(), Some("gpt-5"));
        assert_eq!(undated("claude-opus-4-1-20250805").as_deref(), Some("claude-opus-4-1"));
        for name in ["gpt-5-1", "claude-opus-4-1", "kimi-k2-0905", "o3", "", "glm-4-32b-0414-128k"] {
            assert_eq!(undated(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_name_can_be_looked_up(name in ".{0,60}") {
            prop_assert!(!spellings(&name).is_empty());
            let _ = (vendor(&name), crate::find(None, &name));
        }
    }
}
