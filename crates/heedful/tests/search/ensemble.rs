//! Ensembles.

use heedful::decode::{
    DecodeError, Ensemble, Hypothesis, Limits, SearchInput, SearchOptions, score_by, search, search_by,
};
use heedful::models::Generate;

use crate::table::TableModel;
use crate::{BOS, EOS, options, same, sources};

fn inputs(count: u32) -> Vec<SearchInput> {
    sources(count).into_iter().map(SearchInput::from).collect()
}

#[test]
fn an_ensemble_of_equal_models_equals_the_model() {
    let model = TableModel::new(9, 3);
    let options = SearchOptions { n_best: 3, ..options(4, 10) };
    let alone = search(&model, &sources(6), &options).expect("good sources");
    for members in 1..=5 {
        let ensemble = Ensemble::new(vec![&model as &dyn Generate; members]).expect("models");
        let together = search_by(&ensemble, &inputs(6), &options, &Limits::default());
        assert_eq!(together.as_ref(), Ok(&alone), "{members} members");
    }
}

#[test]
fn the_mean_of_log_probabilities_decides() {
    let models = [1, 2, 3].map(|seed| TableModel::new(5, seed));
    let ensemble =
        Ensemble::new(models.iter().map(|model| model as &dyn Generate).collect()).expect("models");
    let options = SearchOptions { n_best: 4, length_penalty: 0.6, ..options(400, 3) };
    let found = search_by(&ensemble, &inputs(3), &options, &Limits::default()).expect("good sources");
    for (source, found) in sources(3).iter().zip(&found) {
        same(found, &exhaustive_mean(&models, source, 3)[..4]);
        let pairs: Vec<_> = found.iter().map(|found| (source.clone(), found.tokens.clone())).collect();
        let scored = score_by(&ensemble, &pairs, &options).expect("good pairs");
        let bits = |x: f64| x.to_bits();
        assert!(found.iter().zip(&scored).all(|(f, s)| bits(f.log_probability) == bits(s.log_probability)));
    }
}

/// Every target of at most `limit` tokens by the mean of the log-probabilities, normalized; best first.
fn exhaustive_mean(models: &[TableModel], source: &[u32], limit: usize) -> Vec<Hypothesis> {
    let mut found = Vec::new();
    let mut open = vec![(vec![BOS], 0.0)];
    while let Some((past, log_p)) = open.pop() {
        let of_members: Vec<Vec<f64>> =
            models.iter().map(|model| model.log_probabilities(source, &past)).collect();
        let mean = |token: usize| of_members.iter().map(|member| member[token]).sum::<f64>() / 3.0;
        let total: f64 = (0..models[0].vocabulary).map(|token| mean(token).exp()).sum();
        for token in 0..models[0].vocabulary {
            let log_probability = log_p + mean(token) - total.ln();
            if token as u32 == EOS {
                let score = log_probability / ((5.0 + past.len() as f64) / 6.0).powf(0.6);
                found.push(Hypothesis { tokens: past[1..].to_vec(), score, log_probability });
            } else if past.len() <= limit {
                open.push(([past.as_slice(), &[token as u32]].concat(), log_probability));
            }
        }
    }
    found.sort_by(|a, b| b.score.total_cmp(&a.score));
    found
}

#[test]
fn an_ensemble_without_a_model_is_an_error() {
    assert!(matches!(Ensemble::new(Vec::new()), Err(DecodeError::Ensemble { .. })));
}
