//! Moments and ages as people write them.

use crate::Moment;

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

/// Reads a moment: a date (`2026-02-28`, its beginning in UTC), a date with a time (`2026-02-28T09:05:07.120+01:00`, as
/// RFC 3339 has it), `today` or `yesterday` (its beginning in UTC), or an age (`2h`: two hours before `now`).
#[must_use]
pub fn moment(text: &str, now: Moment) -> Option<Moment> {
    if let Some(age) = age(text) {
        return now.0.checked_sub(age).map(Moment);
    }
    let today = now.0.div_euclid(DAY_MS) * DAY_MS;
    match text {
        "today" => return Some(Moment(today)),
        "yesterday" => return Some(Moment(today - DAY_MS)),
        _ => {}
    }
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let ms = match time {
        Some(time) => time_of_day(time)?,
        None => 0,
    };
    Some(Moment(day(date)? * DAY_MS + ms))
}

/// Reads an age in milliseconds: `90d`, `12h`, `30m`, `15s`.
#[must_use]
pub fn age(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 4] = [("d", DAY_MS), ("h", 3_600_000), ("m", 60_000), ("s", 1000)];
    UNITS.iter().find_map(|(unit, each)| Some(number(text.strip_suffix(unit)?, 1..=9)? * each))
}

/// Returns which day a date is, counted from the first of January 1970; nothing if there is no such day.
fn day(date: &str) -> Option<i64> {
    let [year, month, day] = date.split('-').collect::<Vec<_>>().try_into().ok()?;
    let wanted = (number(year, 4..=4)?, number(month, 2..=2)?, number(day, 2..=2)?);
    // No date is further from this than its month and day are.
    let about = (wanted.0 - 1970) * 365_2425 / 10_000 + (wanted.1 - 1) * 30 + wanted.2;
    (about - 40..about + 40).find(|days| civil(*days) == wanted)
}

/// Returns the milliseconds from midnight in UTC to a time such as `09:05:07.12+01:00`.
fn time_of_day(text: &str) -> Option<i64> {
    let at = text.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = text.split_at(at);
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>().try_into().ok()?;
    let (hour, minute, second) = (number(hour, 2..=2)?, number(minute, 2..=2)?, number(second, 2..=2)?);
    number(fraction, 1..=9)?;
    let ms = number(&format!("{fraction}00")[..3], 3..=3)?;
    let is_valid = hour < 24 && minute < 60 && second <= 60;
    is_valid.then_some(())?;
    Some(((hour * 60 + minute) * 60 + second) * 1000 + ms - offset(zone)?)
}

/// Returns how many milliseconds a time zone such as `Z` or `+01:00` is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes) = (number(hours, 2..=2)?, number(minutes, 2..=2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000)
}

/// Reads so many digits, and nothing else.
fn number(digits: &str, count: std::ops::RangeInclusive<usize>) -> Option<i64> {
    let is_number = count.contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
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
    fn moments_are_read_as_they_are_written_and_as_people_write_them() {
        let now = Moment(1_000_000_000_123);
        for (text, expected) in [
            ("2000-02-29", 951_782_400_000),
            ("2001-09-09T01:46:40.123Z", 1_000_000_000_123),
            ("2001-09-09t03:46:40.1234+02:00", 1_000_000_000_123),
            ("2001-09-08 20:16:40-05:30", 1_000_000_000_000),
            ("2001-09-09T01:46:40.1Z", 1_000_000_000_100),
            ("0001-01-01", -62_135_596_800_000),
            ("9999-12-31", 253_402_214_400_000),
            ("2h", now.0 - 7_200_000),
            ("7d", now.0 - 604_800_000),
            ("30m", now.0 - 1_800_000),
            ("15s", now.0 - 15_000),
            ("today", 999_993_600_000),
            ("yesterday", 999_907_200_000),
        ] {
            assert_eq!(moment(text, now), Some(Moment(expected)), "{text}");
        }
        for text in [
            "",
            "h",
            "-2h",
            "2w",
            "2 h",
            "2001",
            "2001-02-29",
            "2001-13-01",
            "2001-1-1",
            "01-01-2001",
            "2001-09-09T01:46",
            "2001-09-09T01:46:40",
            "2001-09-09T24:00:00Z",
            "2001-09-09T01:46:40.Z",
            "2001-09-09T01:46:40+2",
            "tomorrow",
            "2001-09-09T01:46:40.1234567890Z",
            "2001-09-09T01:46:40Zx",
            "é",
        ] {
            assert_eq!(moment(text, now), None, "{text}");
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
