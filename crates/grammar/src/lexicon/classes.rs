//! All classes in one list, repeated by how often their nouns occur.

use super::{Class, culture, household, living, machines, science};

pub(in super::super) const CLASSES: &[Class] = &[
    machines::CARS,
    machines::CYCLES,
    machines::CRAFT,
    // Three times: the words of the running example must occur often enough to be learned in a minute.
    machines::TECHNOLOGY,
    machines::TECHNOLOGY,
    machines::TECHNOLOGY,
    // Twice each: one noun, and the solutions of technology are three times as frequent.
    science::MATHEMATICS,
    science::MATHEMATICS,
    science::CHEMISTRY,
    science::CHEMISTRY,
    machines::DEVICES,
    culture::BOOKS,
    culture::PAPERS,
    culture::WORKS,
    culture::THOUGHTS,
    household::FURNITURE,
    household::HANDHELD,
    culture::INSTRUMENTS,
    household::CLOTHES,
    household::JEWELLERY,
    household::FOOD,
    household::ROOMS,
    household::BUILDINGS,
    living::FIRMS,
    living::SCHOOLS,
    living::PEOPLE,
    living::ANIMALS,
    living::LARGE_ANIMALS,
    living::LAND,
    living::PLANTS,
];
