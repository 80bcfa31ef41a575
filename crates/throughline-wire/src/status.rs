//! Failures and HTTP statuses, as all three dialects agree on them.

use throughline_core::FailureKind;

const STATUSES: [(FailureKind, u16); 10] = [
    (FailureKind::InvalidRequest, 400),
    (FailureKind::Authentication, 401),
    (FailureKind::Permission, 403),
    (FailureKind::NotFound, 404),
    (FailureKind::Conflict, 409),
    (FailureKind::TooLarge, 413),
    (FailureKind::RateLimited, 429),
    (FailureKind::Overloaded, 503),
    (FailureKind::TimedOut, 504),
    (FailureKind::Backend, 502),
];

/// Returns the status that a failure is answered with.
#[must_use]
pub fn status_of(kind: FailureKind) -> u16 {
    STATUSES.iter().find(|(known, _)| *known == kind).map_or(500, |(_, status)| *status)
}

/// Returns the kind of failure that a status stands for.
#[must_use]
pub fn kind_of_status(status: u16) -> FailureKind {
    match status {
        402 => FailureKind::RateLimited,
        // 524 is one proxy's word for a backend that did not answer in time.
        408 | 524 => FailureKind::TimedOut,
        // Not a registered status: one provider's word for having no capacity.
        529 => FailureKind::Overloaded,
        405..=499 if !matches!(status, 409 | 413 | 429) => FailureKind::InvalidRequest,
        _ => STATUSES
            .iter()
            .find(|(_, known)| *known == status)
            .map_or(FailureKind::Backend, |(kind, _)| *kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_and_its_kind_agree() {
        for (kind, status) in STATUSES {
            assert_eq!(status_of(kind), status);
            assert_eq!(kind_of_status(status), kind);
        }
    }

    #[test]
    fn an_unknown_status_is_sorted_by_its_class() {
        assert_eq!(kind_of_status(418), FailureKind::InvalidRequest);
        assert_eq!(kind_of_status(500), FailureKind::Backend);
        assert_eq!(kind_of_status(529), FailureKind::Overloaded);
    }
}
