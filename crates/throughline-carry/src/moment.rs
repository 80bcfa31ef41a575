//! Points in time as session files write them: ISO 8601, or milliseconds since 1970.

/// Milliseconds since the beginning of 1970.
pub type Millis = i64;

const DAY: i64 = 86_400_000;

/// Reads a moment such as `2026-11-16T04:52:27.376Z` or `2025-06-01T10:00:00+02:00`.
#[must_use]
pub fn parse_iso(text: &str) -> Option<Millis> {
    let (date, rest) = text.split_once(['T', ' '])?;
    let mut parts = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1..=9_999).contains(&year) {
        return None;
    }
    let zone = rest.find(['Z', '+', '-']).unwrap_or(rest.len());
    let (time, zone) = rest.split_at(zone);
    let mut parts = time.splitn(3, ':');
    let (hour, minute) = (parts.next()?.parse::<i64>().ok()?, parts.next()?.parse::<i64>().ok()?);
    let seconds: f64 = parts.next().unwrap_or("0").parse().ok()?;
    if !(0..=23).contains(&hour) || !(0..=59).contains(&minute) || !(0.0..61.0).contains(&seconds) {
        return None;
    }
    let millis = (seconds * 1_000.0).round() as i64;
    Some(days(year, month, day) * DAY + (hour * 60 + minute) * 60_000 + millis - offset(zone)?)
}

/// Returns the moment in UTC, to the millisecond.
#[must_use]
pub fn iso(millis: Millis) -> String {
    let (year, month, day) = date(millis);
    let within = millis.rem_euclid(DAY);
    let (hour, minute) = (within / 3_600_000, within / 60_000 % 60);
    let (second, fraction) = (within / 1_000 % 60, within % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// Returns the date as a path, `2026/11/16`.
#[must_use]
pub fn date_path(millis: Millis) -> String {
    let (year, month, day) = date(millis);
    format!("{year:04}/{month:02}/{day:02}")
}

/// Reads the offset of a time zone: `Z`, `+02:00`, or nothing.
fn offset(zone: &str) -> Option<Millis> {
    let sign = match zone.bytes().next() {
        None | Some(b'Z') => return Some(0),
        Some(b'+') => 1,
        _ => -1,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    Some(sign * (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?) * 60_000)
}

/// Returns the days from 1970 to a date of the Gregorian calendar, which repeats every 400 years.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the day that some have more comes last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

fn date(millis: Millis) -> (i64, i64, i64) {
    let days = millis.div_euclid(DAY) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_are_read_as_agents_write_them() {
        assert_eq!(parse_iso("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(parse_iso("2026-11-16T04:52:27.376Z"), Some(1_794_804_747_376));
        assert_eq!(parse_iso("2026-11-16T06:52:27+02:00"), Some(1_794_804_747_000));
        assert_eq!(parse_iso("2026-11-16 04:52"), Some(1_794_804_720_000));
        for bad in ["", "yesterday", "2026-13-01T00:00:00Z", "2026-01-01T99:00:00Z", "2026-01-01T00:00:00+2"]
        {
            assert_eq!(parse_iso(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_moment_comes_back(millis in 0i64..4_000_000_000_000) {
            prop_assert_eq!(parse_iso(&iso(millis)), Some(millis));
        }
    }
}
