//! Moments: relative to now for people, exact for programs.

use super::Ink;
use throughline_gateway::view;
use throughline_store::Moment;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl Ink {
    /// Returns a moment: `3 min ago` on a terminal, else in UTC to the second.
    pub fn when(&self, moment: Moment) -> String {
        if !self.is_on_terminal() {
            return seconds(moment);
        }
        let away = self.now.0 - moment.0;
        let span = match away.abs() {
            ..SECOND => return "just now".to_owned(),
            span @ ..MINUTE => format!("{} s", span / SECOND),
            span @ ..HOUR => format!("{} min", span / MINUTE),
            span @ ..DAY => format!("{} h", span / HOUR),
            span if span < 30 * DAY => format!("{} d", span / DAY),
            _ => return seconds(moment).chars().take_while(|c| *c != 'T').collect(),
        };
        if away < 0 { format!("in {span}") } else { format!("{span} ago") }
    }
}

/// Returns a moment in UTC, to the second.
pub fn seconds(moment: Moment) -> String {
    let iso = view::iso(moment);
    match iso.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => iso,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_how_long_ago_and_programs_when() {
        let now = Moment(1_763_280_000_000);
        let ink = Ink::of_width(80, now);
        let cases = [
            (0, "just now"),
            (-5 * SECOND, "5 s ago"),
            (-3 * MINUTE - 59 * SECOND, "3 min ago"),
            (-23 * HOUR, "23 h ago"),
            (-29 * DAY, "29 d ago"),
            (-31 * DAY, "2025-10-16"),
            (2 * HOUR, "in 2 h"),
        ];
        for (away, expected) in cases {
            assert_eq!(ink.when(Moment(now.0 + away)), expected);
        }
        assert_eq!(Ink::plain().when(now), "2025-11-16T08:00:00Z");
    }
}
