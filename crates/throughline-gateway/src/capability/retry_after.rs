//! `Retry-After`: how long a backend wants us to wait, in the forms that are in use.

use std::time::Duration;

/// Reads how long to wait from the headers of an answer, at `now` in seconds since 1970.
///
/// `retry-after-ms` is one provider's own and more exact, so it goes first. `Retry-After` is a number of
/// seconds, which some write with a fraction, or a date.
pub fn retry_after<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>, now: u64) -> Option<Duration> {
    let (mut exact, mut plain) = (None, None);
    for (name, value) in headers {
        if name.eq_ignore_ascii_case("retry-after-ms") {
            exact = number(value).map(|millis| millis / 1000.0);
        } else if name.eq_ignore_ascii_case("retry-after") {
            plain = number(value).or_else(|| date(value).map(|then| seconds(then.saturating_sub(now))));
        }
    }
    exact.or(plain).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// No wait is long enough to lose precision.
const fn seconds(whole: u64) -> f64 {
    whole as f64
}

/// Reads `Wed, 21 Oct 2015 07:28:00 GMT`, the one form of date that may still be written.
fn date(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut words = text.trim().split_once(", ")?.1.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = words.next()?.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    if words.next() != Some("GMT") || hour > 23 || minute > 59 || second > 60 || !(1..=31).contains(&day) {
        return None;
    }
    Some(((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Counts days by years that begin in March, so that a leap day is the last of its year.
const fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_fractions_milliseconds_and_dates_are_read() {
        let date = "Wed, 21 Oct 2015 07:28:00 GMT";
        let now = 1_445_412_480 - 90;
        for (headers, expected) in [
            (vec![("Retry-After", "3")], Some(3000)),
            (vec![("retry-after", "0.5")], Some(500)),
            (vec![("retry-after", "7"), ("retry-after-ms", "1500")], Some(1500)),
            (vec![("retry-after-ms", "soon"), ("retry-after", "7")], Some(7000)),
            (vec![("retry-after", date)], Some(90_000)),
            (vec![("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")], Some(0)),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "NaN")], None),
            (vec![("retry-after", "1e300")], None),
            (vec![("retry-after", "Wed, 21 Oct 2015 07:28 GMT")], None),
            (vec![("retry-after", "Wed, 00 Oct 2015 07:28:00 GMT")], None),
            (vec![("retry-after", "")], None),
            (vec![], None),
        ] {
            let read = retry_after(headers.clone(), now);
            assert_eq!(read, expected.map(Duration::from_millis), "{headers:?}");
        }
    }

    #[test]
    fn days_are_counted_over_leap_years() {
        for ((year, month, day), days) in
            [((1970, 1, 1), 0), ((2000, 2, 29), 11_016), ((2000, 3, 1), 11_017), ((2026, 11, 15), 20_772)]
        {
            assert_eq!(days_since_1970(year, month, day), days);
        }
    }
}
