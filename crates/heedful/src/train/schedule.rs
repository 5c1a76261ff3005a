//! The learning rate as a function of the step, counted from 1.
//!
//! ```text
//! Noam          factor · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)      as in the paper
//! InverseSqrt   peak · min(step / warmup, √(warmup / step))                     the same curve, with its peak given
//! Cosine        linear up to peak over warmup, then half a cosine down to floor at total
//! Trapezoid     linear up to peak over warmup, peak, then linear down to floor over the last cooldown steps before total
//! Constant      rate
//! ```

use std::f64::consts::PI;

use crate::plot::{Highlight, LineChart, Series, line_chart_svg};

/// A learning rate schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// Linear warmup, then decay with the inverse square root of the step.
    Noam {
        /// Width of the model: wider models need smaller rates.
        d_model: usize,
        /// Steps until the peak.
        warmup: u64,
        /// 1 in the paper.
        factor: f64,
    },
    /// As Noam, with the peak given.
    InverseSqrt {
        /// The rate at step `warmup`.
        peak: f64,
        /// Steps until the peak; 0 for no warmup.
        warmup: u64,
    },
    /// Half a cosine from `peak` to `floor`.
    Cosine {
        /// The peak rate.
        peak: f64,
        /// The rate from step `total` on.
        floor: f64,
        /// Steps until the peak; 0 for no warmup.
        warmup: u64,
        /// The step at which the floor is reached.
        total: u64,
    },
    /// Constant between a linear warmup and a linear cooldown.
    Trapezoid {
        /// The constant rate.
        peak: f64,
        /// The rate from step `total` on.
        floor: f64,
        /// Steps until the peak; 0 for no warmup.
        warmup: u64,
        /// Steps of the decay.
        cooldown: u64,
        /// The step at which the floor is reached.
        total: u64,
    },
    /// A constant rate.
    Constant {
        /// The rate.
        rate: f64,
    },
}

impl Schedule {
    /// The paper's schedule.
    pub fn noam(d_model: usize, warmup: u64) -> Schedule {
        Schedule::Noam { d_model, warmup, factor: 1.0 }
    }

    /// A chart of steps 1 to `steps`.
    pub fn svg(self, steps: u64) -> String {
        const POINTS: u64 = 400;
        let every = (steps / POINTS).max(1);
        let points = (1..=steps)
            .step_by(every as usize)
            .map(|step| (step as f64, f64::from(self.rate(step))))
            .collect();
        let series = vec![Series { name: "learning rate".to_owned(), points, highlight: Highlight::Peak }];
        line_chart_svg(&LineChart {
            title: "learning rate".to_owned(),
            x_label: "step".to_owned(),
            series,
            ..LineChart::default()
        })
    }

    /// The learning rate at `step`, counted from 1.
    pub fn rate(self, step: u64) -> f32 {
        let now = step.max(1) as f64;
        let rate = match self {
            Schedule::Noam { d_model, warmup, factor } => {
                let up = now * (warmup.max(1) as f64).powf(-1.5);
                factor * (d_model as f64).powf(-0.5) * now.powf(-0.5).min(up)
            }
            Schedule::InverseSqrt { peak, warmup } => {
                let warmup = warmup.max(1) as f64;
                peak * (now / warmup).min((warmup / now).sqrt())
            }
            Schedule::Cosine { peak, warmup, .. } | Schedule::Trapezoid { peak, warmup, .. }
                if now <= warmup as f64 =>
            {
                peak * now / warmup as f64
            }
            Schedule::Trapezoid { peak, floor, cooldown, total, .. } => {
                let left = (total as f64 - now).max(0.0) / cooldown.max(1) as f64;
                floor + (peak - floor) * left.min(1.0)
            }
            Schedule::Cosine { peak, floor, warmup, total } => {
                let progress = (now - warmup as f64) / (total.saturating_sub(warmup).max(1) as f64);
                floor + (peak - floor) * 0.5 * (1.0 + (PI * progress.min(1.0)).cos())
            }
            Schedule::Constant { rate } => rate,
        };
        rate as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f32, b: f64) {
        assert!((f64::from(a) - b).abs() <= 1e-6 * b.abs(), "{a} and {b}");
    }

    #[test]
    fn noam_matches_the_paper() {
        let schedule = Schedule::noam(512, 4000);
        close(schedule.rate(1), 512_f64.powf(-0.5) * 4000_f64.powf(-1.5));
        close(schedule.rate(4000), (512.0 * 4000.0_f64).powf(-0.5));
        close(schedule.rate(16_000), 0.5 * (512.0 * 4000.0_f64).powf(-0.5));
        assert!((1..4000).all(|step| schedule.rate(step) < schedule.rate(step + 1)));
        assert!((4000..9000).all(|step| schedule.rate(step) > schedule.rate(step + 1)));
    }

    #[test]
    fn inverse_square_root_is_noam_with_a_given_peak() {
        let noam = Schedule::noam(256, 100);
        let inverse_sqrt = Schedule::InverseSqrt { peak: f64::from(noam.rate(100)), warmup: 100 };
        for step in [1, 50, 100, 101, 5000] {
            close(inverse_sqrt.rate(step), f64::from(noam.rate(step)));
        }
        close(Schedule::InverseSqrt { peak: 0.5, warmup: 0 }.rate(4), 0.25);
    }

    #[test]
    fn cosine_warms_up_decays_and_stays_at_its_floor() {
        let schedule = Schedule::Cosine { peak: 1.0, floor: 0.1, warmup: 10, total: 110 };
        close(schedule.rate(5), 0.5);
        close(schedule.rate(10), 1.0);
        close(schedule.rate(60), 0.55);
        close(schedule.rate(110), 0.1);
        close(schedule.rate(1000), 0.1);
        let at_once = Schedule::Cosine { peak: 1.0, floor: 0.0, warmup: 0, total: 0 };
        assert!(at_once.rate(1).abs() < 1e-6);
    }

    #[test]
    fn a_trapezoid_is_constant_until_its_cooldown() {
        let schedule = Schedule::Trapezoid { peak: 1.0, floor: 0.1, warmup: 10, cooldown: 40, total: 100 };
        for (step, rate) in [(5, 0.5), (10, 1.0), (60, 1.0), (80, 0.55), (100, 0.1), (1000, 0.1)] {
            close(schedule.rate(step), rate);
        }
        let open = Schedule::Trapezoid { peak: 1.0, floor: 0.0, warmup: 0, cooldown: 40, total: u64::MAX };
        close(open.rate(1_000_000), 1.0);
    }

    #[test]
    fn constant_is_constant() {
        let schedule = Schedule::Constant { rate: 3e-4 };
        assert!([0, 1, 1000].into_iter().all(|step| schedule.rate(step) == 3e-4));
    }

    #[test]
    fn the_chart_labels_the_peak() {
        assert!(Schedule::noam(512, 4000).svg(20_000).contains("peak 7e-4"));
    }
}
