//! Scripts without spaces between words.

/// The script of most letters of a text, if it has no spaces between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnspacedScript {
    /// Ideographs.
    Chinese,
    /// Ideographs and kana.
    Japanese,
    /// Thai, Lao, Burmese or Khmer.
    SoutheastAsian,
}

impl UnspacedScript {
    /// The unspaced script of more than half of the letters, if there is one.
    pub fn of<'t>(texts: impl Iterator<Item = &'t str>) -> Option<UnspacedScript> {
        let (mut letters, mut ideographs, mut kana, mut southeast) = (0_usize, 0_usize, 0_usize, 0_usize);
        for c in texts.flat_map(str::chars).filter(|c| c.is_alphabetic()) {
            letters += 1;
            match c {
                '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' => ideographs += 1,
                '\u{3040}'..='\u{30ff}' => kana += 1,
                '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => southeast += 1,
                _ => {}
            }
        }
        if 2 * (ideographs + kana) > letters {
            // Chinese texts may contain a few Japanese names.
            let is_japanese = 20 * kana > ideographs + kana;
            Some(if is_japanese { UnspacedScript::Japanese } else { UnspacedScript::Chinese })
        } else if 2 * southeast > letters {
            Some(UnspacedScript::SoutheastAsian)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_without_spaces_are_recognised() {
        for (text, script) in [
            ("一辆 SUV 汽车停在路边", Some(UnspacedScript::Chinese)),
            ("今日は良い天気ですね", Some(UnspacedScript::Japanese)),
            ("สวัสดีครับ", Some(UnspacedScript::SoutheastAsian)),
            ("the word 车 means car", None),
            ("안녕하세요 여러분", None),
            ("123", None),
        ] {
            assert_eq!(UnspacedScript::of([text].into_iter()), script, "{text}");
        }
    }
}
