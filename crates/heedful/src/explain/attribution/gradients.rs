//! Gradients with respect to token vectors. Copies of the text, each with its own scale of the token vectors
//! and its own prediction, are run in one batch: a copy's gradient does not depend on the others.

use heedful_tensor::{Array, Tensor, tape};

use super::quadrature::gauss_legendre;
use super::{AttributedTarget, Completeness, Reduction, TokenVectors};
use crate::explain::inspect::{Inspected, log_softmax};
use crate::layers::{Pass, StateSite};
use crate::{Error, Result};

/// A copy of the text.
#[derive(Clone, Copy)]
pub(super) struct ScaledCopy {
    /// Its token vectors are multiplied by this.
    pub(super) scale: f64,
    /// The prediction whose log-probability is differentiated.
    pub(super) prediction: usize,
}

/// The result for a copy.
pub(super) struct CopyGradients {
    pub(super) log_probability: f64,
    /// `∂ log p / ∂x` for each stack, row-major.
    pub(super) stacks: Vec<Vec<f32>>,
}

pub(super) fn gradient_x_input(text: &Inspected<'_>, reduction: Reduction) -> Result<Vec<AttributedTarget>> {
    let tokens = TokenVectors::of(text)?;
    let copies = text.all().into_iter().map(|prediction| ScaledCopy { scale: 1.0, prediction });
    let copies: Vec<ScaledCopy> = copies.collect();
    let mut targets = Vec::new();
    for chunk in copies.chunks(tokens.copies()) {
        for (copy, gradients) in chunk.iter().zip(token_gradients(text, &tokens, chunk)?) {
            let stacks = tokens.stacks.iter().zip(&gradients.stacks);
            let scores = stacks.map(|(x, gradient)| {
                let products = x.iter().zip(gradient).map(|(&x, &g)| f64::from(x) * f64::from(g));
                reduction.scores(&products.collect::<Vec<_>>(), tokens.width)
            });
            targets.push(AttributedTarget {
                target: text.predictions()[copy.prediction].clone(),
                log_probability: gradients.log_probability,
                scores: scores.collect(),
                completeness: None,
            });
        }
    }
    Ok(targets)
}

pub(super) fn integrated(
    text: &Inspected<'_>,
    steps: usize,
    reduction: Reduction,
) -> Result<Vec<AttributedTarget>> {
    if steps == 0 || steps > MAX_STEPS {
        return Err(Error::new(format!(
            "integrated gradients take 1 to {MAX_STEPS} steps, not {steps}: 64 are usually enough"
        )));
    }
    let tokens = TokenVectors::of(text)?;
    let points = gauss_legendre(steps);
    let attribute = |prediction: usize| {
        let mut sums: Vec<Vec<f64>> = tokens.stacks.iter().map(|x| vec![0.0; x.len()]).collect();
        for chunk in points.chunks(tokens.copies()) {
            let copies: Vec<ScaledCopy> =
                chunk.iter().map(|&(scale, _)| ScaledCopy { scale, prediction }).collect();
            for ((_, weight), gradients) in chunk.iter().zip(token_gradients(text, &tokens, &copies)?) {
                for (sum, gradient) in sums.iter_mut().zip(&gradients.stacks) {
                    sum.iter_mut().zip(gradient).for_each(|(sum, &g)| *sum += weight * f64::from(g));
                }
            }
        }
        for (sum, x) in sums.iter_mut().zip(&tokens.stacks) {
            sum.iter_mut().zip(x).for_each(|(sum, &x)| *sum *= f64::from(x));
        }
        let ends = [1.0, 0.0].map(|scale| ScaledCopy { scale, prediction });
        let ends = scores(text, &tokens, &ends)?;
        let (difference, sum) = (ends[0] - ends[1], sums.iter().flatten().sum::<f64>());
        let relative_error = (sum - difference).abs() / difference.abs().max(f64::MIN_POSITIVE);
        Ok(AttributedTarget {
            target: text.predictions()[prediction].clone(),
            log_probability: ends[0],
            scores: sums.iter().map(|sum| reduction.scores(sum, tokens.width)).collect(),
            completeness: Some(Completeness { difference, sum, relative_error }),
        })
    };
    text.all().into_iter().map(attribute).collect()
}

const MAX_STEPS: usize = 10_000;

/// The gradients of some copies, which fit one batch.
pub(super) fn token_gradients(
    text: &Inspected<'_>,
    tokens: &TokenVectors,
    copies: &[ScaledCopy],
) -> Result<Vec<CopyGradients>> {
    let variables: Vec<Tensor> = scaled(text, tokens, copies)
        .into_iter()
        .map(|state| Tensor::variable(state.array().clone()))
        .collect();
    let sites = text.inputs().iter().map(|inputs| StateSite::Tokens(inputs.stack));
    let mut pass = Pass::with_gradients().replacing(sites.zip(variables.iter().cloned()).collect());
    let logits = text.logits(&mut pass, copies.len(), &rows(text, copies))?;
    // ∂ log p(y) / ∂ logits = onehot(y) − p
    let (values, width) = (logits.to_vec(), logits.width());
    let mut log_probabilities = Vec::new();
    let mut gradient = vec![0.0_f32; values.len()];
    for ((logits, gradient), copy) in
        values.chunks_exact(width).zip(gradient.chunks_exact_mut(width)).zip(copies)
    {
        let row = log_softmax(logits);
        let class = text.predictions()[copy.prediction].class as usize;
        gradient.iter_mut().zip(&row).for_each(|(gradient, log_p)| *gradient = -(log_p.exp() as f32));
        gradient[class] = -row[class].exp_m1() as f32;
        log_probabilities.push(row[class]);
    }
    let gradient = Array::from_f32_on(logits.device(), logits.rows(), width, &gradient);
    let gradients = tape::backward_from(&logits, gradient);
    let of_stack = |variable: &Tensor| match gradients.of(variable) {
        Some(gradient) => gradient.to_vec(),
        None => vec![0.0; variable.rows() * variable.width()],
    };
    let stacks: Vec<Vec<f32>> = variables.iter().map(of_stack).collect();
    // Backward also wrote the gradients of the parameters, which nobody uses.
    text.model.params().clear_gradients();
    let copy = |(number, log_probability): (usize, f64)| CopyGradients {
        log_probability,
        stacks: stacks
            .iter()
            .map(|stack| {
                let length = stack.len() / copies.len();
                stack[number * length..(number + 1) * length].to_vec()
            })
            .collect(),
    };
    Ok(log_probabilities.into_iter().enumerate().map(copy).collect())
}

/// The log-probabilities of the copies' predictions, in f32.
pub(super) fn scores(text: &Inspected<'_>, tokens: &TokenVectors, copies: &[ScaledCopy]) -> Result<Vec<f64>> {
    let sites = text.inputs().iter().map(|inputs| StateSite::Tokens(inputs.stack));
    let states = sites.zip(scaled(text, tokens, copies)).collect();
    let mut pass = Pass::inference(heedful_tensor::DType::F32).replacing(states);
    let logits = text.log_probabilities(&mut pass, copies.len(), &rows(text, copies))?;
    let class = |copy: &ScaledCopy| text.predictions()[copy.prediction].class as usize;
    Ok(logits.iter().zip(copies).map(|(row, copy)| row[class(copy)]).collect())
}

/// The copies' predictions in their batch.
fn rows(text: &Inspected<'_>, copies: &[ScaledCopy]) -> Vec<usize> {
    let count = text.predictions().len();
    copies.iter().enumerate().map(|(number, copy)| number * count + copy.prediction).collect()
}

/// The token vectors of all copies, for each stack.
fn scaled(text: &Inspected<'_>, tokens: &TokenVectors, copies: &[ScaledCopy]) -> Vec<Tensor> {
    let stack = |x: &Vec<f32>| {
        let scale = |copy: &ScaledCopy| {
            let scale = copy.scale as f32;
            x.iter().map(move |&x| scale * x)
        };
        text.state(tokens.width, &copies.iter().flat_map(scale).collect::<Vec<_>>())
    };
    tokens.stacks.iter().map(stack).collect()
}
