//! Pruning: selects the pieces that are kept.

use super::lattice::Lattices;
use super::{Piece, Word};

/// The ratio of pieces kept in one round: losses are computed with the current vocabulary, so few are removed
/// at a time.
const KEEP_RATIO: f64 = 0.75;

/// Decides for each piece whether it is kept; characters always are. At least `min` are kept.
pub(super) fn choose(pieces: &[Piece], lattices: &Lattices, min: usize) -> Vec<bool> {
    let uses = lattices.best_uses(pieces);
    let total: f64 = uses.iter().sum();
    // Treats the pieces as words, to find the best segmentation of each piece without itself.
    let as_words: Vec<Word> = pieces.iter().map(|piece| (piece.characters.clone(), 1.0)).collect();
    let inside = Lattices::of(&as_words, pieces);
    let mut kept: Vec<bool> = pieces.iter().map(Piece::is_character).collect();
    let mut losses: Vec<(usize, f64)> = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        if !piece.is_character() && uses[number] > 0.0 {
            let parts = inside.best_without(number, pieces, number as u32);
            losses.push((number, loss(number, &parts, &uses, total)));
        }
    }
    losses.sort_by(|(a, a_loss), (b, b_loss)| b_loss.total_cmp(a_loss).then(a.cmp(b)));
    let characters = kept.iter().filter(|&&kept| kept).count();
    let max = ((pieces.len() as f64 * KEEP_RATIO) as usize).max(min);
    for &(number, _) in losses.iter().take(max.saturating_sub(characters)) {
        kept[number] = true;
    }
    kept
}

/// The decrease of the text's log-likelihood if each use of a piece is replaced by its parts.
fn loss(piece: usize, parts: &[u32], uses: &[f64], total: f64) -> f64 {
    let here = uses[piece];
    let now = here.ln() - total.ln();
    let total_without = (total + here * (parts.len() as f64 - 1.0)).ln();
    let without: f64 = parts.iter().map(|&part| (uses[part as usize] + here).ln() - total_without).sum();
    here * (now - without)
}
