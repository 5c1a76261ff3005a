//! Where the tags of a sentence stand in its translation.
//!
//! ```text
//! atoms      words, and the punctuation before and after them, of both sentences
//! links      the atom of the source that each atom of the translation comes from
//! element    goes around the stretch of atoms with the most that come from inside of it, and the fewest that do not
//! cut        goes where the most atoms come from the right side of it
//! point      goes to the neighbour that it had
//! ```

use std::ops::Range;

use super::entities::encode;
use super::marks::{Element, Item, Mark, Marks};
use super::scan::{Kind, Sight};
use crate::text::layout::is_unspaced;
use crate::text::words::WordLinks;

/// A translation as HTML, with the marks of its source.
pub(in crate::text) fn render(source: &str, marks: &Marks, output: &str, links: &WordLinks) -> String {
    let mut html = String::with_capacity(output.len());
    if marks.is_empty() {
        encode(output, &mut html);
        return html;
    }
    let (source, target) = (atoms(source, &links.source), atoms(output, &links.target));
    let links = link(&source, &target, &links.pairs);
    let placement = Placement { source, target, links, marks: &marks.0, output };
    placement.write(&marks.tree(), 0..placement.target.len(), 0..output.len(), &mut html);
    html
}

/// A word without its punctuation, or the punctuation before or after it.
#[derive(Clone, Debug)]
struct Atom {
    range: Range<usize>,
    /// The index of the word.
    word: usize,
    part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Before,
    Word,
    After,
}

fn atoms(text: &str, words: &[Range<usize>]) -> Vec<Atom> {
    let mut atoms = Vec::with_capacity(words.len());
    let mut push = |range: Range<usize>, word, part| {
        if !range.is_empty() {
            atoms.push(Atom { range, word, part });
        }
    };
    for (word, Range { start, end }) in words.iter().cloned().enumerate() {
        let core = text[start..end].trim_matches(|c: char| !c.is_alphanumeric());
        if core.is_empty() {
            push(start..end, word, Part::Word);
            continue;
        }
        let whole = &text[start..end];
        let core_start = start + whole.len() - whole.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
        push(start..core_start, word, Part::Before);
        push(core_start..core_start + core.len(), word, Part::Word);
        push(core_start + core.len()..end, word, Part::After);
    }
    atoms
}

/// For each atom of the translation the index of an atom of the source.
fn link(source: &[Atom], target: &[Atom], pairs: &[(usize, usize)]) -> Vec<Option<usize>> {
    if pairs.is_empty() {
        return (0..target.len())
            .map(|atom| (!source.is_empty()).then(|| atom * source.len() / target.len()))
            .collect();
    }
    let partner = |(index, atom): (usize, &Atom)| {
        // Full stop to full stop, whatever words they stand after.
        let is_end =
            |atoms: &[Atom], index: usize| index + 1 == atoms.len() && atoms[index].part == Part::After;
        if is_end(target, index) && !source.is_empty() && is_end(source, source.len() - 1) {
            return Some(source.len() - 1);
        }
        let of_word = pairs[pairs.partition_point(|pair| pair.1 < atom.word)..].first();
        let &(word, _) = of_word.filter(|(_, target)| *target == atom.word)?;
        let first = source.partition_point(|known| known.word < word);
        let atoms = source[first..].iter().take_while(|known| known.word == word);
        let of_part = |part| atoms.clone().position(|known| known.part == part).map(|place| first + place);
        of_part(atom.part).or_else(|| of_part(Part::Word))
    };
    target.iter().enumerate().map(partner).collect()
}

struct Placement<'a> {
    source: Vec<Atom>,
    target: Vec<Atom>,
    links: Vec<Option<usize>>,
    marks: &'a [Mark],
    output: &'a str,
}

/// What an atom inside and one outside of an element count for its stretch: a single stranger between two is tolerated.
const INSIDE: i64 = 5;
const OUTSIDE: i64 = -3;

impl Placement<'_> {
    /// Writes the items of one level, which have the atoms of `region` and the bytes of `text`.
    fn write(&self, items: &[Item], region: Range<usize>, text: Range<usize>, html: &mut String) {
        let places = self.places(items, &region);
        let mut order: Vec<usize> = (0..items.len()).collect();
        // At one place, what has no words comes first. The sort keeps the order of the rest.
        order.sort_by_key(|&item| (places[item].start, !places[item].is_empty()));
        let mut at = text.start;
        let write_up_to = |end: usize, at: &mut usize, html: &mut String| {
            if end > *at {
                encode(&self.output[*at..end], html);
                *at = end;
            }
        };
        for item in order {
            let place = places[item].clone();
            let left =
                if place.start > region.start { self.target[place.start - 1].range.end } else { text.start };
            let right =
                if place.start < region.end { self.target[place.start].range.start } else { text.end };
            match &items[item] {
                Item::Element(element) if !place.is_empty() => {
                    let end = self.target[place.end - 1].range.end;
                    write_up_to(right, &mut at, html);
                    self.write_element(element, place, right..end, html);
                    at = end;
                }
                Item::Element(element) => {
                    write_up_to(right, &mut at, html);
                    self.write_element(element, place, at..at, html);
                }
                Item::Cut(mark) => {
                    let is_end = self.marks[*mark].kind == Kind::Close;
                    write_up_to(if is_end { left } else { right }, &mut at, html);
                    html.push_str(&self.marks[*mark].html);
                }
                Item::Point(mark) => {
                    let mark = &self.marks[*mark];
                    let is_at_left = mark.clings_to_the_left();
                    write_up_to(if is_at_left { left } else { right }, &mut at, html);
                    self.write_point(mark, at, html);
                }
            }
        }
        write_up_to(text.end, &mut at, html);
    }

    fn write_element(&self, element: &Element, region: Range<usize>, text: Range<usize>, html: &mut String) {
        html.push_str(&self.marks[element.open].html);
        self.write(&element.items, region, text, html);
        html.push_str(&self.marks[element.close].html);
    }

    /// Writes a point with the spaces that it had; what reads as a word is never joined to one.
    fn write_point(&self, mark: &Mark, at: usize, html: &mut String) {
        let is_word = mark.kind == Kind::Point(Sight::Word);
        let joins = |neighbour: Option<char>| {
            neighbour.is_some_and(|c| is_word && c.is_alphanumeric() && !is_unspaced(c))
        };
        let before = html.chars().next_back();
        let is_apart = before.is_none_or(char::is_whitespace) || at == 0;
        if !is_apart && (mark.spaces.before || joins(self.output[..at].chars().next_back())) {
            html.push(' ');
        }
        html.push_str(&mark.html);
        let next = self.output[at..].chars().next();
        if next.is_some_and(|c| !c.is_whitespace()) && (mark.spaces.after || joins(next)) {
            html.push(' ');
        }
    }

    /// The stretch of atoms of each item, within a region. Those of elements do not overlap; nothing else stands inside of
    /// one.
    fn places(&self, items: &[Item], region: &Range<usize>) -> Vec<Range<usize>> {
        let mut places = vec![region.start..region.start; items.len()];
        let mut free = vec![true; region.len()];
        let mut elements: Vec<(usize, &Element, Range<usize>)> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Item::Element(element) = item {
                elements.push((index, element, self.atoms_of(element)));
            }
        }
        // The largest first: it has the most to lose.
        elements.sort_by_key(|(_, _, atoms)| std::cmp::Reverse(atoms.len()));
        let mut without_words = Vec::new();
        for (index, element, atoms) in elements {
            match self.best_stretch(&atoms, region, &free) {
                Some(stretch) => {
                    free[stretch.start - region.start..stretch.end - region.start].fill(false);
                    places[index] = stretch;
                }
                None => without_words.push((index, element, atoms)),
            }
        }
        for (index, element, atoms) in without_words {
            let at = self.neighbour(&self.marks[element.open], region);
            let is_free = |atom: &usize| {
                let is_word = self.target.get(*atom).is_some_and(|found| found.part == Part::Word);
                region.contains(atom) && free[atom - region.start] && is_word
            };
            // The source had words here, and none was found in the translation: the nearest serves.
            let nearest = [Some(at), at.checked_sub(1)].into_iter().flatten().find(is_free);
            places[index] = match nearest.filter(|_| !atoms.is_empty()) {
                Some(atom) => {
                    free[atom - region.start] = false;
                    atom..atom + 1
                }
                None => at..at,
            };
        }
        let outside = Outside::new(region, &places);
        for place in places.iter_mut().filter(|place| place.start == place.end) {
            let at = outside.nearest(place.start);
            *place = at..at;
        }
        self.place_points_and_cuts(items, region, &outside, &mut places);
        places
    }

    fn place_points_and_cuts(
        &self,
        items: &[Item],
        region: &Range<usize>,
        outside: &Outside,
        places: &mut [Range<usize>],
    ) {
        // Thousands of marks may stand at few places.
        let mut cuts: Vec<Option<usize>> = vec![None; self.source.len() + 1];
        let mut points: Vec<[Option<usize>; 2]> = vec![[None; 2]; self.source.len() + 1];
        let mut last = region.start;
        for (index, item) in items.iter().enumerate() {
            let at = match item {
                Item::Element(_) => continue,
                Item::Cut(mark) => {
                    let known = self.atoms_before(&self.marks[*mark]);
                    let at = *cuts[known].get_or_insert_with(|| self.best_cut(known, region, outside));
                    last = last.max(at);
                    last
                }
                Item::Point(mark) => {
                    let mark = &self.marks[*mark];
                    let known = &mut points[self.atoms_before(mark)][usize::from(mark.clings_to_the_left())];
                    *known.get_or_insert_with(|| outside.nearest(self.neighbour(mark, region)))
                }
            };
            places[index] = at..at;
        }
    }

    /// The atoms of the source that are inside of an element, by more than half.
    fn atoms_of(&self, element: &Element) -> Range<usize> {
        let (start, end) = (self.marks[element.open].at, self.marks[element.close].at);
        let is_inside = |atom: &Atom| {
            let shared = atom.range.end.min(end).saturating_sub(atom.range.start.max(start));
            2 * shared > atom.range.len()
        };
        let from = self.source.partition_point(|atom| atom.range.end <= start);
        let begins_outside = |atom: &&Atom| atom.range.start < end && !is_inside(atom);
        let first = from + self.source[from..].iter().take_while(begins_outside).count();
        first..first + self.source[first..].iter().take_while(|atom| is_inside(atom)).count()
    }

    /// The stretch of free atoms with the best sum; of several, the first and shortest. `None` if no atom comes from inside.
    fn best_stretch(
        &self,
        atoms: &Range<usize>,
        region: &Range<usize>,
        free: &[bool],
    ) -> Option<Range<usize>> {
        let mut best: Option<(i64, Range<usize>)> = None;
        let (mut sum, mut start) = (0, region.start);
        for atom in region.clone() {
            if !free[atom - region.start] {
                (sum, start) = (0, atom + 1);
                continue;
            }
            let is_inside = self.links[atom].is_some_and(|source| atoms.contains(&source));
            sum += if is_inside { INSIDE } else { OUTSIDE };
            if sum <= 0 {
                (sum, start) = (0, atom + 1);
            } else if best.as_ref().is_none_or(|(most, _)| sum > *most) {
                best = Some((sum, start..atom + 1));
            }
        }
        best.map(|(_, stretch)| stretch)
    }

    /// How many atoms of the source begin before a mark.
    fn atoms_before(&self, mark: &Mark) -> usize {
        self.source.partition_point(|atom| atom.range.start < mark.at)
    }

    /// The place in the translation next to what the mark is next to in the source.
    fn neighbour(&self, mark: &Mark, region: &Range<usize>) -> usize {
        let next = self.atoms_before(mark);
        // Distance in the source, and place in the translation: of several at one distance, the outermost.
        let linked = || region.clone().filter_map(|atom| Some((self.links[atom]?, atom)));
        let after =
            linked().filter(|&(source, _)| source >= next).map(|(source, atom)| (source - next, atom));
        let after = after.min();
        let before = linked().filter(|&(source, _)| source < next);
        let before = before.map(|(source, atom)| (next - 1 - source, atom + 1));
        let before = before.min_by_key(|&(distance, at)| (distance, std::cmp::Reverse(at)));
        match (before, after) {
            (Some((left, before)), Some((right, after))) => {
                let is_left = left < right || left == right && mark.clings_to_the_left();
                if is_left { before } else { after }
            }
            (Some((_, at)), None) | (None, Some((_, at))) => at,
            (None, None) => region.start + region.len() * next / self.source.len().max(1),
        }
    }

    /// Where most atoms have the right side of a cut that stands after so many atoms of the source.
    fn best_cut(&self, atoms_before: usize, region: &Range<usize>, outside: &Outside) -> usize {
        let comes_before = |atom: usize| self.links[atom].is_some_and(|source| source < atoms_before);
        let (mut best, mut at, mut sum) = (0_i64, region.start, 0_i64);
        for atom in region.clone() {
            sum += if comes_before(atom) { 1 } else { -1 };
            if sum > best && outside.has(atom + 1) {
                (best, at) = (sum, atom + 1);
            }
        }
        at
    }
}

impl Mark {
    /// `word<img> word`
    fn clings_to_the_left(&self) -> bool {
        !self.spaces.before && self.spaces.after
    }
}

/// The places between atoms that are not inside of an element.
struct Outside {
    first: usize,
    is_outside: Vec<bool>,
}

impl Outside {
    fn new(region: &Range<usize>, places: &[Range<usize>]) -> Outside {
        let mut is_outside = vec![true; region.len() + 1];
        for place in places.iter().filter(|place| place.len() > 1) {
            is_outside[place.start + 1 - region.start..place.end - region.start].fill(false);
        }
        Outside { first: region.start, is_outside }
    }

    fn has(&self, at: usize) -> bool {
        at.checked_sub(self.first)
            .and_then(|at| self.is_outside.get(at))
            .is_some_and(|is_outside| *is_outside)
    }

    fn nearest(&self, at: usize) -> usize {
        let all = self.first..self.first + self.is_outside.len();
        all.filter(|&place| self.has(place)).min_by_key(|&place| place.abs_diff(at)).unwrap_or(self.first)
    }
}
