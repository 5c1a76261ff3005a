//! Heat maps over layers × heads, one per statistic.

use super::examples::HeadExample;
use super::report::{HeadReport, HeadRow};
use crate::layers::{AttentionRole, LayerName};
use crate::plot::{HeatMapOptions, Picture, PictureGroup, heat_map_svg};

/// The name of a statistic and a function that reads it from a row.
type Statistic = (&'static str, fn(&HeadRow) -> Option<f64>);

const STATISTICS: [Statistic; 8] = [
    ("entropy, bits", |row| Some(row.statistics.entropy)),
    ("confidence", |row| Some(row.statistics.confidence)),
    ("distance, tokens", |row| Some(row.statistics.distance)),
    ("previous token", |row| row.statistics.previous),
    ("same token", |row| row.statistics.same),
    ("next token", |row| row.statistics.next),
    ("separators", |row| Some(row.statistics.separator)),
    ("1 − AER", |row| row.agreement.map(|agreement| 1.0 - agreement.aer)),
];

impl HeadReport {
    /// One group of heat maps per kind of attention, then one group per head with its example sentences,
    /// titled with the head's name.
    pub fn pictures(&self) -> Vec<PictureGroup> {
        let kinds = [
            (AttentionRole::EncoderSelf, "Encoder: from the source to itself"),
            (AttentionRole::DecoderSelf, "Decoder: from the output to its prefix"),
            (AttentionRole::Cross, "Cross: from the output to the source"),
        ];
        let group = |(kind, title): (AttentionRole, &str)| {
            let rows: Vec<&HeadRow> = self.of_kind(kind).collect();
            let pictures =
                STATISTICS.iter().filter_map(|statistic| picture(&rows, statistic)).map(Picture::from);
            PictureGroup { title: title.to_owned(), note: String::new(), pictures: pictures.collect() }
        };
        let examples = self.heads.iter().map(|row| PictureGroup {
            title: row.name.to_string(),
            note: String::new(),
            pictures: row.examples.iter().map(HeadExample::picture).collect(),
        });
        kinds.into_iter().map(group).chain(examples).filter(|group| !group.pictures.is_empty()).collect()
    }
}

/// The heat map of one statistic; `None` if no head has it.
fn picture(rows: &[&HeadRow], (title, statistic): &Statistic) -> Option<String> {
    let values: Vec<f32> =
        rows.iter().map(|row| statistic(row).map_or(f32::NAN, |value| value as f32)).collect();
    let largest = values.iter().copied().filter(|value| !value.is_nan()).reduce(f32::max)?;
    let count = |index: fn(&HeadRow) -> usize| rows.iter().map(|row| index(row) + 1).max().unwrap_or(0);
    let (layers, heads) = (count(|row| row.name.layer), count(|row| row.name.head));
    let mut cells = vec![f32::NAN; layers * heads];
    for (row, value) in rows.iter().zip(values) {
        cells[row.name.layer * heads + row.name.head] = value;
    }
    let role = rows.first()?.name.role;
    let row_labels: Vec<String> = (0..layers).map(|layer| LayerName { role, layer }.to_string()).collect();
    let column_labels: Vec<String> = (0..heads).map(|head| head.to_string()).collect();
    // Full colour means 1 for shares and the largest value for unbounded statistics.
    let full = if largest > 1.0 { largest } else { 1.0 };
    let options = HeatMapOptions { title: (*title).to_owned(), full, ..HeatMapOptions::default() };
    Some(heat_map_svg(&cells, &row_labels, &column_labels, &options))
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::example;

    #[test]
    fn each_kind_of_attention_has_a_picture_of_each_of_its_statistics() {
        let groups = example().pictures();
        assert_eq!(groups.len(), 2);
        assert!(groups[0].title.starts_with("Encoder"));
        assert!(
            groups[0].svg().contains(">encoder.0.self<") && groups[1].svg().contains(">decoder.0.cross<")
        );
        let all = groups[1].svg();
        assert!(
            all.contains("1 − AER") && all.contains("entropy, bits") && !all.contains("previous token"),
            "{all}"
        );
        assert!(!groups[0].svg().contains("AER"));
    }
}
