//! Axes: mapping of values to coordinates, and ticks.

/// The scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic; only for positive values.
    Log,
}

/// An axis over a range of values.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    ticks: Vec<f64>,
}

impl Axis {
    /// An axis with about `count` ticks that covers all `values` that can be drawn on the scale. `None` if
    /// there are no such values.
    pub(super) fn around(values: impl Iterator<Item = f64>, scale: Scale, count: usize) -> Option<Axis> {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|&value| is_drawable(value, scale)) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            return None;
        }
        Some(match scale {
            Scale::Linear => linear(low, high, count),
            Scale::Log => logarithmic(low, high),
        })
    }

    /// The same axis from exactly `low` to `high`, without extending to round numbers.
    pub(super) fn tight(self, low: f64, high: f64) -> Axis {
        let ticks = self.ticks.into_iter().filter(|&tick| (low..=high).contains(&tick)).collect();
        Axis { low, high, scale: self.scale, ticks }
    }

    /// The position of a value, from 0 at the low end to 1 at the high end.
    pub(super) fn position(&self, value: f64) -> f64 {
        let scaled = |value: f64| if self.scale == Scale::Log { value.ln() } else { value };
        let (low, high) = (scaled(self.low), scaled(self.high));
        if high > low { (scaled(value) - low) / (high - low) } else { 0.5 }
    }

    /// The values to label.
    pub(super) fn ticks(&self) -> &[f64] {
        &self.ticks
    }
}

/// Whether a value can be drawn on an axis of this scale.
pub(super) fn is_drawable(value: f64, scale: Scale) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

/// Formats a value with at most four digits and an SI suffix: `12k`, `3.4M`, `2e-5`.
pub(super) fn human(value: f64) -> String {
    let size = value.abs();
    let short = |value: f64, digits: usize| {
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match size {
        _ if !value.is_finite() => value.to_string(),
        0.0 => "0".to_owned(),
        1e21.. => format!("{value:.1e}"),
        1e18.. => short(value / 1e18, 2) + "E",
        1e15.. => short(value / 1e15, 2) + "P",
        1e12.. => short(value / 1e12, 2) + "T",
        1e9.. => short(value / 1e9, 2) + "G",
        1e6.. => short(value / 1e6, 2) + "M",
        1e4.. => short(value / 1e3, 1) + "k",
        100.0.. => short(value, 0),
        10.0.. => short(value, 1),
        1.0.. => short(value, 2),
        0.01.. => short(value, 3),
        _ => {
            let text = format!("{value:.1e}");
            text.replacen(".0e", "e", 1)
        }
    }
}

fn linear(low: f64, high: f64, count: usize) -> Axis {
    // A constant line gets space above and below.
    let (low, high) = if high > low {
        (low, high)
    } else {
        (low - low.abs().max(1.0) * 0.5, high + high.abs().max(1.0) * 0.5)
    };
    let step = nice((high - low) / count.max(1) as f64);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    let ticks = (0..=(last - first) as usize).map(|tick| (first + tick as f64) * step).collect();
    Axis { low: first * step, high: last * step, scale: Scale::Linear, ticks }
}

/// An axis that ends at 1, 2 or 5 times a power of ten. Ticks are powers of ten, and also their double and
/// fivefold if the range is small.
fn logarithmic(low: f64, high: f64) -> Axis {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let factors: &[f64] = if last - first <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let all: Vec<f64> = (first..=last.max(first + 1))
        .flat_map(|exponent| factors.iter().map(move |factor| factor * 10_f64.powi(exponent)))
        .collect();
    let start = all.iter().rposition(|&tick| tick <= low * (1.0 + 1e-9)).unwrap_or(0);
    let end = all.iter().position(|&tick| tick >= high * (1.0 - 1e-9)).unwrap_or(all.len() - 1);
    let end = if end > start { end } else { (start + 1).min(all.len() - 1) };
    // Skip labels if there are many decades.
    let every = (end - start).div_ceil(7).max(1);
    let ticks = all[start..=end].iter().copied().step_by(every).collect();
    Axis { low: all[start], high: all[end], scale: Scale::Log, ticks }
}

/// The smallest 1, 2 or 5 times a power of ten that is not below `step`.
fn nice(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|&nice| nice >= step * (1.0 - 1e-9))
        .unwrap_or(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64], scale: Scale) -> Vec<String> {
        let axis = Axis::around(values.iter().copied(), scale, 5).expect("values");
        axis.ticks().iter().map(|&tick| human(tick)).collect()
    }

    #[test]
    fn ticks_are_round_and_cover_all_values() {
        assert_eq!(ticks(&[0.0, 8000.0], Scale::Linear), ["0", "2000", "4000", "6000", "8000"]);
        assert_eq!(ticks(&[1.3, 4.4], Scale::Linear), ["1", "2", "3", "4", "5"]);
        assert_eq!(ticks(&[0.9, 60.0], Scale::Log), ["0.5", "1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(ticks(&[1e-5, 1.0], Scale::Log), ["1e-5", "1e-4", "1e-3", "0.01", "0.1", "1"]);
    }

    #[test]
    fn constant_lines_have_an_axis_and_undrawable_values_have_none() {
        assert!(ticks(&[3.0, 3.0], Scale::Linear).len() >= 2);
        assert!(ticks(&[1.0], Scale::Log).len() >= 2);
        assert!(Axis::around([f64::NAN].into_iter(), Scale::Linear, 5).is_none());
        assert!(Axis::around([-1.0, 0.0].into_iter(), Scale::Log, 5).is_none());
    }

    #[test]
    fn values_are_formatted_with_si_suffixes() {
        let cases = [
            (0.0, "0"),
            (0.00021, "2.1e-4"),
            (0.5, "0.5"),
            (38.02, "38"),
            (1234.0, "1234"),
            (48_200.0, "48.2k"),
            (7e6, "7M"),
            (7.957_114e13, "79.57T"),
            (2.3e19, "23E"),
            (2.3e22, "2.3e22"),
        ];
        for (value, text) in cases {
            assert_eq!(human(value), text);
        }
    }
}
