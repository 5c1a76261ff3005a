//! What mathematicians and chemists call a solution.

use super::adjectives::*;
use super::verbs::*;
use super::{Class, Role, Senses, State, modifier, noun};

pub(super) const MATHEMATICS: Class = Class {
    nouns: &[noun("个", "解", "solution", "solutions")],
    opinions: &[SIMPLE, COMPLEX, UNIQUE, IMPORTANT, INTERESTING, ORDINARY],
    statures: &[NEW],
    colours: &[],
    kinds: &[
        modifier("数值", "numerical"),
        modifier("解析", "analytical"),
        modifier("近似", "approximate"),
        modifier("精确", "exact"),
        modifier("最优", "optimal"),
        modifier("整数", "integer"),
    ],
    verbs: &[CALCULATE, DERIVE, VERIFY],
    states: &[State::Need, State::Have],
    places: &[],
    role: Role::Belonging,
    senses: Senses::Marked,
};

pub(super) const CHEMISTRY: Class = Class {
    nouns: &[noun("种", "溶液", "solution", "solutions")],
    opinions: &[EXPENSIVE, CHEAP, USEFUL, ORDINARY, IMPORTANT],
    statures: &[NEW],
    colours: COLOURS,
    kinds: &[
        modifier("盐", "salt"),
        modifier("糖", "sugar"),
        modifier("酸性", "acidic"),
        modifier("碱性", "alkaline"),
        modifier("饱和", "saturated"),
        modifier("缓冲", "buffer"),
    ],
    verbs: &[DILUTE, HEAT, FILTER],
    states: &[State::Need, State::Have],
    places: ON_A_TABLE,
    role: Role::Belonging,
    senses: Senses::Marked,
};
