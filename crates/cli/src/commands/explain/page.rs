//! Sentences as one page that needs no network.

use heedful::explain::{
    AttentionGrid, ExplainedKind, ExplainedOutput, Explanation, HeadChoice, LayerChoice, Level, Matrix,
    PictureGroup, Report, Status, alignment_svg, grid_svg, words_svg,
};

/// A page with the pictures of every sentence.
pub(super) fn page(explanations: &[Explanation], title: &str) -> String {
    let spoken = || explanations.iter().filter_map(|one| one.outputs.first().map(|best| (one, best)));
    let report = Report {
        title: title.to_owned(),
        status: Status::Absent,
        pictures: spoken().map(|(explanation, best)| pictures(explanation, best)).collect(),
        attention: spoken().flat_map(|(explanation, best)| grids(explanation, best)).collect(),
        ..Report::default()
    };
    report.to_html()
}

fn pictures(explanation: &Explanation, best: &ExplainedOutput) -> PictureGroup {
    let mut pictures = Vec::new();
    let matrix = Matrix::of(explanation, best, LayerChoice::CROSS, HeadChoice::Mean, Level::Word);
    if let Ok(matrix) = matrix {
        pictures.push(words_svg(&matrix));
        pictures.push(alignment_svg(&matrix.weights, &matrix.rows, &matrix.columns));
    }
    if !best.attention.is_empty() {
        pictures.push(grid_svg(best, None, "all layers and heads"));
    }
    PictureGroup { title: format!("{} → {}", explanation.source.text, best.text), pictures }
}

fn grids(explanation: &Explanation, best: &ExplainedOutput) -> Vec<AttentionGrid> {
    let pieces = |tokens: &[heedful::explain::ExplainedToken]| {
        tokens.iter().map(|token| token.piece.clone()).collect()
    };
    let cross = best.attention.iter().filter(|layer| layer.kind == ExplainedKind::Cross);
    cross
        .map(|layer| AttentionGrid {
            title: format!("{} → {}: {}", explanation.source.text, best.text, layer.name),
            heads: (0..layer.head_count()).map(|head| layer.head(head)).collect(),
            rows: pieces(&best.tokens),
            columns: pieces(&explanation.source.tokens),
        })
        .collect()
}
