//! Imported models are served with the languages in their files.

use std::fs;
use std::path::Path;

use heedful::exchange::import;
use heedful_server::{ModelSpec, Server};
use serde_json::json;

use crate::client::get;
use crate::models::options;

#[test]
fn a_served_import_has_the_languages_of_its_files() {
    let place = tempfile::tempdir().expect("a folder");
    let [original, model] = ["original", "model"].map(|name| place.path().join(name));
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heedful/tests/exchange/models/marian-swish");
    fs::create_dir(&original).expect("room");
    for file in given.read_dir().expect("a folder") {
        let file = file.expect("a file");
        fs::copy(file.path(), original.join(file.file_name())).expect("room");
    }
    let serve = || {
        import::read(&original).expect("a model").save(&model).expect("room");
        Server::start(options(vec![ModelSpec::named("translator", &model)])).expect("a server")
    };
    assert_eq!(get(&serve(), "/languages").json()[0]["code"], "und", "its files do not name them");
    // In the format of Helsinki-NLP's models.
    let settings = json!({"source_lang": "zh", "target_lang": "en", "tokenizer_class": "MarianTokenizer"});
    fs::write(original.join("tokenizer_config.json"), settings.to_string()).expect("room");
    let server = serve();
    let languages = json!([
        {"code": "zh", "name": "Chinese", "targets": ["en"]},
        {"code": "en", "name": "English", "targets": []},
    ]);
    assert_eq!(get(&server, "/languages").json(), languages);
    let models = get(&server, "/v1/models").json();
    assert_eq!((models[0]["source"].as_str(), models[0]["target"].as_str()), (Some("zh"), Some("en")));
}
