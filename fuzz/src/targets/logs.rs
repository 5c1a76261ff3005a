//! The logs of a run, which are read when it is resumed, and by the server.

use std::fs;
use std::path::Path;

use heedful::train::log::{
    AttentionFile, MetricsFile, read_attention, read_metrics, records_after, sample_histories,
};

use super::{JSON, Opened, Target, Verdict, target};

pub(super) fn targets() -> Vec<Target> {
    vec![target("metrics", metrics, JSON, 500), target("attention", attention, JSON, 500)]
}

fn metrics(folder: &Path) -> Opened {
    let file = folder.join("metrics.jsonl");
    let seed = "{\"step\":200,\"seconds\":12.5,\"loss\":2.31,\"learning_rate\":0.0021}\n\
                {\"step\":500,\"seconds\":31.0,\"valid_bleu\":38.02,\"samples\":[{\"source\":\"一\",\"reference\":\"a\",\
                \"output\":\"b\"}]}\n{\"step\":501,\"seconds\":31.5,\"loss\":null}\n";
    let read = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        let read = read_metrics(&file);
        if let Ok(records) = &read {
            sample_histories(records);
        }
        let _ = records_after(&file, 200);
        let _ = MetricsFile::resume(&file, 300);
        Verdict::of(read)
    };
    Opened { seeds: vec![seed.into()], read: Box::new(read) }
}

fn attention(folder: &Path) -> Opened {
    let file = folder.join("attention.jsonl");
    let line = |step: u32| {
        format!(
            "{{\"step\":{step},\"layer\":\"x\",\"rows\":[\"a\",\"b\"],\"columns\":[\"c\"],\"weights\":[[0.5],[1]]}}\n"
        )
    };
    let seed = line(5) + &line(10);
    let read = move |bytes: &[u8]| {
        fs::write(&file, bytes).expect("disk space");
        let read = read_attention(&file);
        let _ = AttentionFile::resume(&file, 7);
        Verdict::of(read)
    };
    Opened { seeds: vec![seed.into_bytes()], read: Box::new(read) }
}
