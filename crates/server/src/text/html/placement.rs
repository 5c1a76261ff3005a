//! Places the inline tags of a sentence in its translation.
//!
//! ```text
//! atoms         words, and the punctuation before and after them, of both sentences
//! links         for each atom of the translation the aligned atom of the source
//! element       encloses the range of atoms with the best score: linked atoms inside count for it, others against it
//! unpaired tag  goes where most atoms are on the correct side of it
//! placeholder   stays next to its neighbour in the source
//! ```

use std::ops::Range;

use heedful::data::sentences::is_unspaced;

use super::entities::encode;
use super::inline_tags::{Element, InlineTag, InlineTags, Item};
use super::scan::{PlaceholderKind, TagKind};
use crate::text::words::WordLinks;

/// A translation as HTML, with the inline tags of its source.
pub(in crate::text) fn render(source: &str, tags: &InlineTags, output: &str, links: &WordLinks) -> String {
    let mut html = String::with_capacity(output.len());
    if tags.is_empty() {
        encode(output, &mut html);
        return html;
    }
    let (source, target) = (atoms(source, &links.source), atoms(output, &links.target));
    let links = link(&source, &target, &links.pairs);
    let placement = Placement { source, target, links, tags: &tags.0, output };
    placement.write(&tags.tree(), 0..placement.target.len(), 0..output.len(), &mut html);
    html
}

/// A word without its punctuation, or the punctuation before or after it.
#[derive(Clone, Debug)]
struct Atom {
    range: Range<usize>,
    /// The index of the word.
    word: usize,
    kind: AtomKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtomKind {
    LeadingPunctuation,
    Word,
    TrailingPunctuation,
}

fn atoms(text: &str, words: &[Range<usize>]) -> Vec<Atom> {
    let mut atoms = Vec::with_capacity(words.len());
    let mut push = |range: Range<usize>, word, kind| {
        if !range.is_empty() {
            atoms.push(Atom { range, word, kind });
        }
    };
    for (word, Range { start, end }) in words.iter().cloned().enumerate() {
        let core = text[start..end].trim_matches(|c: char| !c.is_alphanumeric());
        if core.is_empty() {
            push(start..end, word, AtomKind::Word);
            continue;
        }
        let whole = &text[start..end];
        let core_start = start + whole.len() - whole.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
        push(start..core_start, word, AtomKind::LeadingPunctuation);
        push(core_start..core_start + core.len(), word, AtomKind::Word);
        push(core_start + core.len()..end, word, AtomKind::TrailingPunctuation);
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
        // The final punctuation is linked to the final punctuation, whatever the words before it.
        let is_end = |atoms: &[Atom], index: usize| {
            index + 1 == atoms.len() && atoms[index].kind == AtomKind::TrailingPunctuation
        };
        if is_end(target, index) && !source.is_empty() && is_end(source, source.len() - 1) {
            return Some(source.len() - 1);
        }
        let of_word = pairs[pairs.partition_point(|pair| pair.1 < atom.word)..].first();
        let &(word, _) = of_word.filter(|(_, target)| *target == atom.word)?;
        let first = source.partition_point(|known| known.word < word);
        let atoms = source[first..].iter().take_while(|known| known.word == word);
        let of_kind = |kind| atoms.clone().position(|known| known.kind == kind).map(|at| first + at);
        of_kind(atom.kind).or_else(|| of_kind(AtomKind::Word))
    };
    target.iter().enumerate().map(partner).collect()
}

struct Placement<'a> {
    source: Vec<Atom>,
    target: Vec<Atom>,
    links: Vec<Option<usize>>,
    tags: &'a [InlineTag],
    output: &'a str,
}

/// The scores of a linked and of another atom in the range of an element: one other atom between two linked
/// ones is tolerated.
const LINKED_SCORE: i64 = 5;
const OTHER_SCORE: i64 = -3;

impl Placement<'_> {
    /// Writes the items of one nesting level, which cover the atoms of `region` and the bytes of `text`.
    fn write(&self, items: &[Item], region: Range<usize>, text: Range<usize>, html: &mut String) {
        let places = self.places(items, &region);
        let mut order: Vec<usize> = (0..items.len()).collect();
        // At the same position, items without words come first. The stable sort keeps the order of the rest.
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
                Item::Unpaired(tag) => {
                    let is_end = self.tags[*tag].kind == TagKind::Close;
                    write_up_to(if is_end { left } else { right }, &mut at, html);
                    html.push_str(&self.tags[*tag].html);
                }
                Item::Placeholder(tag) => {
                    let tag = &self.tags[*tag];
                    let is_at_left = tag.is_attached_to_the_left();
                    write_up_to(if is_at_left { left } else { right }, &mut at, html);
                    self.write_placeholder(tag, at, html);
                }
            }
        }
        write_up_to(text.end, &mut at, html);
    }

    fn write_element(&self, element: &Element, region: Range<usize>, text: Range<usize>, html: &mut String) {
        html.push_str(&self.tags[element.open].html);
        self.write(&element.items, region, text, html);
        html.push_str(&self.tags[element.close].html);
    }

    /// Writes a placeholder with its spaces; one that reads as a word is never joined to another word.
    fn write_placeholder(&self, tag: &InlineTag, at: usize, html: &mut String) {
        let is_word = tag.kind == TagKind::Placeholder(PlaceholderKind::Word);
        let joins = |neighbour: Option<char>| {
            neighbour.is_some_and(|c| is_word && c.is_alphanumeric() && !is_unspaced(c))
        };
        let before = html.chars().next_back();
        let is_separated = before.is_none_or(char::is_whitespace) || at == 0;
        if !is_separated && (tag.spaces.before || joins(self.output[..at].chars().next_back())) {
            html.push(' ');
        }
        html.push_str(&tag.html);
        let next = self.output[at..].chars().next();
        if next.is_some_and(|c| !c.is_whitespace()) && (tag.spaces.after || joins(next)) {
            html.push(' ');
        }
    }

    /// The range of atoms of each item, within a region. The ranges of elements do not overlap, and other
    /// items stay outside of them.
    fn places(&self, items: &[Item], region: &Range<usize>) -> Vec<Range<usize>> {
        let mut places = vec![region.start..region.start; items.len()];
        let mut free = vec![true; region.len()];
        let mut elements: Vec<(usize, &Element, Range<usize>)> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Item::Element(element) = item {
                elements.push((index, element, self.atoms_of(element)));
            }
        }
        // The largest first, because a conflict would cost it the most atoms.
        elements.sort_by_key(|(_, _, atoms)| std::cmp::Reverse(atoms.len()));
        let mut without_words = Vec::new();
        for (index, element, atoms) in elements {
            match self.best_range(&atoms, region, &free) {
                Some(range) => {
                    free[range.start - region.start..range.end - region.start].fill(false);
                    places[index] = range;
                }
                None => without_words.push((index, element, atoms)),
            }
        }
        for (index, element, atoms) in without_words {
            let at = self.neighbour(&self.tags[element.open], region);
            let is_free = |atom: &usize| {
                let is_word = self.target.get(*atom).is_some_and(|found| found.kind == AtomKind::Word);
                region.contains(atom) && free[atom - region.start] && is_word
            };
            // The element has words in the source, but none are linked: it takes the nearest atom.
            let nearest = [Some(at), at.checked_sub(1)].into_iter().flatten().find(is_free);
            places[index] = match nearest.filter(|_| !atoms.is_empty()) {
                Some(atom) => {
                    free[atom - region.start] = false;
                    atom..atom + 1
                }
                None => at..at,
            };
        }
        let outside = OutsideElements::new(region, &places);
        for place in places.iter_mut().filter(|place| place.start == place.end) {
            let at = outside.nearest(place.start);
            *place = at..at;
        }
        self.place_single_tags(items, region, &outside, &mut places);
        places
    }

    fn place_single_tags(
        &self,
        items: &[Item],
        region: &Range<usize>,
        outside: &OutsideElements,
        places: &mut [Range<usize>],
    ) {
        // Cached, because thousands of tags may share few positions.
        let mut unpaired: Vec<Option<usize>> = vec![None; self.source.len() + 1];
        let mut placeholders: Vec<[Option<usize>; 2]> = vec![[None; 2]; self.source.len() + 1];
        let mut last = region.start;
        for (index, item) in items.iter().enumerate() {
            let at = match item {
                Item::Element(_) => continue,
                Item::Unpaired(tag) => {
                    let known = self.atoms_before(&self.tags[*tag]);
                    let at =
                        *unpaired[known].get_or_insert_with(|| self.best_boundary(known, region, outside));
                    last = last.max(at);
                    last
                }
                Item::Placeholder(tag) => {
                    let tag = &self.tags[*tag];
                    let known =
                        &mut placeholders[self.atoms_before(tag)][usize::from(tag.is_attached_to_the_left())];
                    *known.get_or_insert_with(|| outside.nearest(self.neighbour(tag, region)))
                }
            };
            places[index] = at..at;
        }
    }

    /// The atoms of the source of which more than half is inside an element.
    fn atoms_of(&self, element: &Element) -> Range<usize> {
        let (start, end) = (self.tags[element.open].at, self.tags[element.close].at);
        let is_inside = |atom: &Atom| {
            let shared = atom.range.end.min(end).saturating_sub(atom.range.start.max(start));
            2 * shared > atom.range.len()
        };
        let from = self.source.partition_point(|atom| atom.range.end <= start);
        let begins_outside = |atom: &&Atom| atom.range.start < end && !is_inside(atom);
        let first = from + self.source[from..].iter().take_while(begins_outside).count();
        first..first + self.source[first..].iter().take_while(|atom| is_inside(atom)).count()
    }

    /// The range of free atoms with the best score; the first and shortest of equals. `None` if no atom is
    /// linked.
    fn best_range(&self, atoms: &Range<usize>, region: &Range<usize>, free: &[bool]) -> Option<Range<usize>> {
        let mut best: Option<(i64, Range<usize>)> = None;
        let (mut sum, mut start) = (0, region.start);
        for atom in region.clone() {
            if !free[atom - region.start] {
                (sum, start) = (0, atom + 1);
                continue;
            }
            let is_inside = self.links[atom].is_some_and(|source| atoms.contains(&source));
            sum += if is_inside { LINKED_SCORE } else { OTHER_SCORE };
            if sum <= 0 {
                (sum, start) = (0, atom + 1);
            } else if best.as_ref().is_none_or(|(most, _)| sum > *most) {
                best = Some((sum, start..atom + 1));
            }
        }
        best.map(|(_, range)| range)
    }

    /// The number of source atoms that begin before a tag.
    fn atoms_before(&self, tag: &InlineTag) -> usize {
        self.source.partition_point(|atom| atom.range.start < tag.at)
    }

    /// The position in the translation next to the atoms linked to the tag's neighbours in the source.
    fn neighbour(&self, tag: &InlineTag, region: &Range<usize>) -> usize {
        let next = self.atoms_before(tag);
        // Distance in the source, and position in the translation; of equal distances, the outermost.
        let linked = || region.clone().filter_map(|atom| Some((self.links[atom]?, atom)));
        let after =
            linked().filter(|&(source, _)| source >= next).map(|(source, atom)| (source - next, atom));
        let after = after.min();
        let before = linked().filter(|&(source, _)| source < next);
        let before = before.map(|(source, atom)| (next - 1 - source, atom + 1));
        let before = before.min_by_key(|&(distance, at)| (distance, std::cmp::Reverse(at)));
        match (before, after) {
            (Some((left, before)), Some((right, after))) => {
                let is_left = left < right || left == right && tag.is_attached_to_the_left();
                if is_left { before } else { after }
            }
            (Some((_, at)), None) | (None, Some((_, at))) => at,
            (None, None) => region.start + region.len() * next / self.source.len().max(1),
        }
    }

    /// The position with most atoms on the correct side of an unpaired tag that follows `atoms_before` source
    /// atoms.
    fn best_boundary(&self, atoms_before: usize, region: &Range<usize>, outside: &OutsideElements) -> usize {
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

impl InlineTag {
    /// `word<img> word`
    fn is_attached_to_the_left(&self) -> bool {
        !self.spaces.before && self.spaces.after
    }
}

/// The positions between atoms that are not inside an element.
struct OutsideElements {
    first: usize,
    is_outside: Vec<bool>,
}

impl OutsideElements {
    fn new(region: &Range<usize>, places: &[Range<usize>]) -> OutsideElements {
        let mut is_outside = vec![true; region.len() + 1];
        for place in places.iter().filter(|place| place.len() > 1) {
            is_outside[place.start + 1 - region.start..place.end - region.start].fill(false);
        }
        OutsideElements { first: region.start, is_outside }
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
