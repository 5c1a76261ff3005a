//! `--shard auto`: which shard, by the variables of whatever started this process.
//!
//! | | number | of |
//! |---|---|---|
//! | Slurm array | `SLURM_ARRAY_TASK_ID`, from `_MIN` in steps of `_STEP` | `SLURM_ARRAY_TASK_COUNT` |
//! | Kubernetes indexed job | `JOB_COMPLETION_INDEX`, from 0 | `auto/N` or `HEEDFUL_SHARDS` |
//! | GNU parallel | `PARALLEL_SEQ`, from 1 | `auto/N` or `HEEDFUL_SHARDS` |
//! | srun, mpirun | `SLURM_PROCID`, `OMPI_COMM_WORLD_RANK`, `PMI_RANK`, from 0 | `SLURM_STEP_NUM_TASKS`, `…_SIZE` |

use anyhow::{Context, Result, bail};
use heedful::data::corpus::Shard;

const COUNT: &str = "HEEDFUL_SHARDS";

/// A numbering of processes.
struct Source {
    /// The variable with the number.
    number: &'static str,
    /// That of the first process.
    first: u32,
    /// The variable with the number of processes, if there is such.
    count: Option<&'static str>,
    /// A variable without which the others mean something else.
    needs: Option<&'static str>,
}

const SOURCES: [Source; 5] = [
    Source { number: "JOB_COMPLETION_INDEX", first: 0, count: None, needs: None },
    Source { number: "PARALLEL_SEQ", first: 1, count: None, needs: None },
    // A batch script has a SLURM_PROCID too, always 0: only srun has steps.
    Source {
        number: "SLURM_PROCID",
        first: 0,
        count: Some("SLURM_STEP_NUM_TASKS"),
        needs: Some("SLURM_STEP_ID"),
    },
    Source { number: "OMPI_COMM_WORLD_RANK", first: 0, count: Some("OMPI_COMM_WORLD_SIZE"), needs: None },
    Source { number: "PMI_RANK", first: 0, count: Some("PMI_SIZE"), needs: None },
];

/// The shard of this process. `count` is what `--shard auto/N` says.
pub(super) fn find(count: Option<u32>, variable: impl Fn(&str) -> Option<String>) -> Result<Shard> {
    let number = |name: &str| -> Result<Option<u32>> {
        let Some(text) = variable(name).filter(|text| !text.trim().is_empty()) else { return Ok(None) };
        let number = text.trim().parse();
        number.map(Some).with_context(|| format!("{name} is `{text}`, where a whole number is expected"))
    };
    let given = match count {
        Some(count) => Some(count),
        None => number(COUNT)?,
    };
    let mut found: Vec<(&str, u32, u32)> = array(given, &number)?.into_iter().collect();
    for source in &SOURCES {
        let Some(index) = number(source.number)? else { continue };
        let is_meant = source.needs.is_none_or(|name| variable(name).is_some());
        let own = source.count.map(&number).transpose()?.flatten();
        // One process alone is no division of the work.
        if !is_meant || (source.count.is_some() && own.is_none_or(|own| own < 2)) {
            continue;
        }
        let name = source.number;
        let Some(of) = own.or(given) else {
            bail!("{name} is {index}, but nothing says of how many: write --shard auto/N, or set {COUNT}=N");
        };
        if given.is_some_and(|given| given != of) {
            bail!(
                "{} shards are asked for, and {name} counts {of} processes: start as many, or give each its --shard I/N",
                given.unwrap_or_default()
            );
        }
        let position = index.checked_sub(source.first).map(|index| index + 1).unwrap_or_default();
        found.push((name, position, of));
    }
    let Some(&(name, index, of)) = found.first() else {
        bail!(
            "--shard auto finds nothing that numbers this process: SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, PARALLEL_SEQ, or, \
             of several processes, SLURM_PROCID (by srun), OMPI_COMM_WORLD_RANK, PMI_RANK. Write --shard I/N, for example 3/16"
        );
    };
    if let Some((other, its_index, its_of)) = found.iter().find(|one| (one.1, one.2) != (index, of)) {
        bail!(
            "--shard auto finds two numbers: {name} means {index}/{of} and {other} means {its_index}/{its_of}. \
             Write the one that is meant, as --shard I/N"
        );
    }
    Shard::new(index, of).with_context(|| {
        format!("{name} means shard {index} of {of}, which there is not: start {of} processes, or change N")
    })
}

/// A task of a Slurm array, which may begin anywhere and have steps.
fn array(
    given: Option<u32>,
    number: &impl Fn(&str) -> Result<Option<u32>>,
) -> Result<Option<(&'static str, u32, u32)>> {
    const ID: &str = "SLURM_ARRAY_TASK_ID";
    let Some(id) = number(ID)? else { return Ok(None) };
    let of_array = |name: &str| number(&format!("SLURM_ARRAY_TASK_{name}"));
    let (Some(first), Some(last)) = (of_array("MIN")?, of_array("MAX")?) else {
        bail!("{ID} is set, but SLURM_ARRAY_TASK_MIN or SLURM_ARRAY_TASK_MAX is not: write --shard I/N");
    };
    let step = of_array("STEP")?.unwrap_or(1).max(1);
    let regular = last.checked_sub(first).map_or(0, |span| span / step + 1);
    let count = of_array("COUNT")?.unwrap_or(regular);
    let is_regular = count == regular && id >= first && id <= last && (id - first) % step == 0;
    if !is_regular || given.is_some_and(|given| given != count) {
        let all = given.map_or_else(|| "N".to_owned(), |given| given.to_string());
        bail!(
            "this Slurm array has {count} tasks from {first} to {last}, which are not the shards 1 to {all}: submit all of them \
             (finished ones are skipped), or write --shard $SLURM_ARRAY_TASK_ID/{all}"
        );
    }
    Ok(Some((ID, (id - first) / step + 1, count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: Option<u32>, variables: &str) -> Result<(u32, u32)> {
        let variable = |name: &str| {
            let pairs = variables.split_whitespace().filter_map(|pair| pair.split_once('='));
            pairs.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
        };
        find(count, variable).map(|shard| (shard.number(), shard.count()))
    }

    #[test]
    fn whatever_started_the_process_says_which_shard_it_is() {
        let array = |id, first, last, step, count| {
            format!(
                "SLURM_ARRAY_TASK_ID={id} SLURM_ARRAY_TASK_MIN={first} SLURM_ARRAY_TASK_MAX={last} \
                 SLURM_ARRAY_TASK_STEP={step} SLURM_ARRAY_TASK_COUNT={count} SLURM_PROCID=0 SLURM_NTASKS=1"
            )
        };
        for (count, variables, expected) in [
            (None, array(1, 1, 16, 1, 16), (1, 16)),
            (None, array(0, 0, 15, 1, 16), (1, 16)),
            (Some(16), array(15, 0, 15, 1, 16), (16, 16)),
            (None, array(9, 1, 13, 4, 4), (3, 4)),
            (None, array(9, 1, 15, 4, 4), (3, 4)),
            (Some(8), "JOB_COMPLETION_INDEX=0".to_owned(), (1, 8)),
            (None, "JOB_COMPLETION_INDEX=7 HEEDFUL_SHARDS=8".to_owned(), (8, 8)),
            (Some(3), "PARALLEL_SEQ=3".to_owned(), (3, 3)),
            (None, "SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_ID=0".to_owned(), (3, 4)),
            (None, "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2".to_owned(), (1, 2)),
            (
                None,
                "PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0".to_owned(),
                (2, 2),
            ),
        ] {
            assert_eq!(found(count, &variables).expect(&variables), expected, "{variables}");
        }
    }

    #[test]
    fn what_is_not_certain_is_an_error_that_names_the_variables() {
        for (count, variables, expected) in [
            (None, "", "SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX"),
            // A batch script that forgot srun would do the first shard alone.
            (None, "SLURM_PROCID=0 SLURM_NTASKS=4", "SLURM_PROCID (by srun)"),
            (None, "JOB_COMPLETION_INDEX=3", "HEEDFUL_SHARDS=N"),
            (Some(3), "JOB_COMPLETION_INDEX=3", "shard 4 of 3"),
            (Some(3), "PARALLEL_SEQ=0", "shard 0 of 3"),
            (None, "PARALLEL_SEQ=two HEEDFUL_SHARDS=2", "PARALLEL_SEQ is `two`"),
            (Some(8), "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", "counts 2 processes"),
            (Some(2), "JOB_COMPLETION_INDEX=0 PARALLEL_SEQ=2", "finds two numbers"),
            (None, "SLURM_ARRAY_TASK_ID=3", "_MIN or"),
            (
                None,
                "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_MIN=3 SLURM_ARRAY_TASK_MAX=7 SLURM_ARRAY_TASK_COUNT=2",
                "2 tasks",
            ),
            (
                Some(9),
                "SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=8",
                "the shards 1 to 9",
            ),
        ] {
            let message = found(count, variables).expect_err(variables).to_string();
            assert!(message.contains(expected), "{variables}: {message}");
        }
    }
}
