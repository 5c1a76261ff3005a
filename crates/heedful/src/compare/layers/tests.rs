use super::*;

fn settings() -> LayerSettings {
    LayerSettings {
        lengths: vec![5, 9],
        widths: vec![8, 96],
        window: 4,
        kernel_size: 5,
        seconds: 1e-6,
        compute: DType::F32,
    }
}

#[test]
fn path_lengths_follow_from_the_reach_of_a_layer() {
    let path = |kind: LayerKind, n| kind.longest_path(n, &settings());
    assert_eq!(LayerKind::ALL.map(|kind| path(kind, 9)), [1, 2, 9, 2, 2]);
    assert_eq!(LayerKind::ALL.map(|kind| path(kind, 10)), [1, 3, 10, 3, 2]);
    assert_eq!(LayerKind::ALL.map(|kind| path(kind, 1)), [1, 1, 1, 1, 1]);
}

#[test]
fn the_measured_path_through_dilated_convolutions_is_logarithmic_as_in_the_paper() {
    for kernel_size in [3, 5, 7] {
        let settings = LayerSettings { kernel_size, ..settings() };
        for n in [1, 2, 3, 4, 5, 14, 15, 100, 1000] {
            let path = path::dilated(n, kernel_size);
            assert_eq!(
                path,
                LayerKind::Dilated.longest_path(n, &settings),
                "{n} tokens, kernel size {kernel_size}"
            );
            let logarithm = (n as f64).log(kernel_size as f64);
            assert!(
                (path as f64 - logarithm).abs() <= 1.0,
                "{n} tokens, kernel size {kernel_size}: {path} and {logarithm}"
            );
        }
    }
}

#[test]
fn every_layer_is_measured_at_every_size_and_reported() {
    let mut calls = 0;
    let measurements = measure(&settings(), &mut |_| calls += 1).expect("valid settings");
    assert_eq!((calls, measurements.len()), (20, settings().count()));
    for measurement in &measurements {
        assert!(measurement.forward > 0.0 && measurement.training > 0.0, "{measurement:?}");
        assert!(measurement.repetitions >= 5, "{measurement:?}");
    }
    let files = files(&settings(), &measurements);
    assert_eq!(files.csv.lines().count(), 21);
    assert_eq!(files.markdown.matches("O(k·n·d²)").count(), 2 + 8);
    assert!(files.report.to_html().contains("<svg"));
}

#[test]
fn invalid_settings_are_errors() {
    let error = |change: fn(&mut LayerSettings)| {
        let mut settings = settings();
        change(&mut settings);
        measure(&settings, &mut |_| ()).expect_err("bad settings").to_string()
    };
    assert!(error(|settings| settings.kernel_size = 4).contains("kernel size 4"));
    assert!(error(|settings| settings.kernel_size = 1).contains("odd number of 3 or more"));
    assert!(error(|settings| settings.lengths[1] = 0).contains("a length must be at least 1"));
    assert!(error(|settings| settings.widths.clear()).contains("number of widths"));
    assert!(error(|settings| settings.window = 0).contains("window"));
    assert!(error(|settings| settings.seconds = f64::NAN).contains("NaN is not above 0"));
}
