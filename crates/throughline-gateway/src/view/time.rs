//! Moments as people write them.

use throughline_store::Moment;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Returns a moment in UTC, as ISO 8601 with milliseconds: `2026-02-28T09:05:07.120Z`.
#[must_use]
pub fn iso(moment: Moment) -> String {
    let (year, month, day) = civil(moment.0.div_euclid(DAY_MS));
    let ms = moment.0.rem_euclid(DAY_MS);
    let (seconds, ms) = (ms / 1000, ms % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Returns year, month and day of the day that is `days` after the first of January 1970.
///
/// Years are counted from March, so that the leap day is the last of its year: then the months have the
/// lengths of a line through 153 days for every five of them, and 400 years always have 146097 days.
const fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    // From the first of March of the year 0.
    let days = days + 719_468;
    let era = days.div_euclid(ERA_DAYS);
    let in_era = days.rem_euclid(ERA_DAYS);
    let year_of_era = (in_era - in_era / 1460 + in_era / 36_524 - in_era / (ERA_DAYS - 1)) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_in_utc() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_000_000_000_123, "2001-09-09T01:46:40.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(Moment(ms)), expected);
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut before = civil(-200_000);
        for days in -199_999..200_000 {
            let (year, month, day) = civil(days);
            let follows = match before {
                (y, m, d) if (y, m) == (year, month) => day == d + 1,
                (y, 12, 31) => (year, month, day) == (y + 1, 1, 1),
                (y, m, d) => (year, month, day) == (y, m + 1, 1) && (28..=31).contains(&d),
            };
            assert!(follows, "{before:?} {:?}", (year, month, day));
            before = (year, month, day);
        }
    }
}
