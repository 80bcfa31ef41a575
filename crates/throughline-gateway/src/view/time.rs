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

/// Reads a moment: a day, `2026-02-28`, or a moment of it in UTC, `2026-02-28T09:05`, with seconds and more if wanted.
#[must_use]
pub fn moment_of(text: &str) -> Option<Moment> {
    let (date, time) = text.split_once('T').unwrap_or((text, "00:00"));
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.strip_suffix('Z').unwrap_or(time).splitn(3, ':');
    let number = |part: Option<&str>| part.map_or(Some(0.0), |part| part.parse::<f64>().ok());
    let (hour, minute, second) = (number(time.next())?, number(time.next())?, number(time.next())?);
    let is_time =
        (0.0..24.0).contains(&hour) && (0.0..60.0).contains(&minute) && (0.0..61.0).contains(&second);
    let days = days_since(year, month, day).filter(|_| is_time)?;
    #[expect(clippy::cast_possible_truncation, reason = "a time of day in milliseconds is small")]
    let ms = ((hour * 3600.0 + minute * 60.0 + second) * 1000.0).round() as i64;
    Some(Moment(days * DAY_MS + ms))
}

/// Returns how many days after the first of January 1970 a day is; nothing if there is no such day.
fn days_since(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(0..10_000).contains(&year) {
        return None;
    }
    // A guess that is at most a few days off, mended by the other direction.
    let about = (year - 1970) * 365 + (year - 1969).div_euclid(4) - (year - 1901).div_euclid(100)
        + (year - 1601).div_euclid(400)
        + (month - 1) * 30
        + day;
    (about - 5..about + 10).find(|days| civil(*days) == (year, month, day))
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
    fn moments_are_read_as_they_are_written() {
        for ms in [0, 951_782_400_000, 1_000_000_000_123, 4_107_542_400_000, 1_798_761_599_999] {
            assert_eq!(moment_of(&iso(Moment(ms))), Some(Moment(ms)));
        }
        for days in 0..40_000 {
            let (year, month, day) = civil(days);
            let written = format!("{year:04}-{month:02}-{day:02}");
            assert_eq!(moment_of(&written), Some(Moment(days * DAY_MS)), "{written}");
        }
        for bad in ["", "today", "2026-02-30", "2026-13-01", "2026-01-01T24:00", "2026-01-01T10:99"] {
            assert_eq!(moment_of(bad), None, "{bad}");
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
