use std::collections::HashMap;

use super::*;

#[test]
fn both_directions_are_functions_over_more_than_300_000_distinct_phrases() {
    let grammar = Grammar::new();
    let mut to_english: HashMap<String, String> = HashMap::new();
    let mut to_chinese: HashMap<String, String> = HashMap::new();
    // Not through `phrases`, which leaves out phrases with the same Chinese: the test searches for those.
    for number in 0..600_000 {
        let Phrase { chinese, english, .. } = grammar.draw(&mut Dice::new(1, number));
        let other = to_chinese.entry(english.clone()).or_insert_with(|| chinese.clone());
        assert_eq!(*other, chinese, "{english}");
        let other = to_english.entry(chinese).or_insert_with(|| english.clone());
        assert_eq!(*other, english);
    }
    assert!(to_english.len() > 300_000, "{}", to_english.len());
    assert_eq!(to_chinese.len(), to_english.len());
    println!("{} distinct of 600000", to_english.len());
}

#[test]
fn the_running_example_is_in_the_grammar_and_never_in_training() {
    let (class, noun) = Grammar::new()
        .entries
        .into_iter()
        .find(|(_, noun)| noun.chinese == "解决方案")
        .expect("the lexicon has solutions");
    let kind = class.kinds.iter().find(|kind| kind.chinese == "自动驾驶");
    let phrase = NounPhrase {
        determiner: Determiner::A,
        opinion: None,
        stature: None,
        colour: None,
        kind: Some(kind.expect("and driving")),
        noun,
    };
    let phrase = Draft::new().chinese(&phrase.chinese()).phrase(phrase.english()).finish();
    assert_eq!((phrase.chinese.as_str(), phrase.english.as_str()), EXAMPLE);
    assert_eq!(phrase.chinese_words, ["一", "套", "自动驾驶", "解决方案"]);
    assert!(phrase.is_held_out());
    let inside = Phrase { chinese: format!("我需要{}。", EXAMPLE.0), ..phrase };
    assert!(inside.is_held_out());
}

#[test]
fn a_solution_has_three_senses_and_its_context_always_decides() {
    let grammar = Grammar::new();
    let contexts = |noun: &str| -> Vec<&str> {
        let (class, _) = grammar.entries.iter().find(|(_, entry)| entry.chinese == noun).expect("a sense");
        let kinds = class.kinds.iter().map(|kind| kind.english);
        kinds.chain(class.verbs.iter().flat_map(|verb| [verb.base, verb.past])).collect()
    };
    let mut counts: HashMap<&str, [usize; 2]> = HashMap::new();
    for phrase in grammar.phrases(9).take(60_000).filter(|phrase| phrase.english.contains("solution")) {
        for noun in ["解", "溶液"].into_iter().filter(|noun| phrase.chinese_words.contains(noun)) {
            let decides = |word: &&str| phrase.english.contains(*word);
            let decided = contexts(noun).iter().any(decides);
            // A progressive form starts like the verb.
            let is_progressive = phrase.english.contains("ing");
            assert!(decided || is_progressive, "{}", phrase.english);
            counts.entry(noun).or_default()[usize::from(!contexts(noun).iter().any(decides))] += 1;
        }
    }
    assert!(counts["解"][0] > 500 && counts["溶液"][0] > 500, "{counts:?}");
    // In both directions: the examples agree with the grammar and are excluded from training.
    for sense in SENSES {
        let drawn = (0..4_000_000).map(|number| grammar.draw(&mut Dice::new(2, number)));
        let found =
            drawn.filter(|phrase| phrase.english == sense.english).map(|phrase| phrase.chinese).next();
        assert_eq!(found.as_deref(), Some(sense.chinese), "{}", sense.english);
        let phrase =
            Phrase { chinese: sense.chinese.to_owned(), english: String::new(), chinese_words: Vec::new() };
        assert!(phrase.is_held_out() && sense.chinese.contains(sense.noun));
        assert!(sense.deciding.iter().all(|word| sense.english.contains(word)));
    }
}

#[test]
fn training_and_test_share_nothing_under_any_seeds() {
    let grammar = Grammar::new();
    let one = grammar.split(1, 20_000, 500);
    let other = grammar.split(2, 500, 2_000);
    assert_eq!((one.train.len(), one.test.len()), (20_000, 500));
    let learned: HashSet<&str> = one.train.iter().map(|phrase| phrase.chinese.as_str()).collect();
    for asked in one.test.iter().chain(&other.test) {
        assert!(!learned.contains(asked.chinese.as_str()), "{}", asked.chinese);
        assert!(asked.is_held_out());
    }
}

#[test]
fn the_same_seed_gives_the_same_phrases_and_another_gives_others() {
    let grammar = Grammar::new();
    let drawn = |seed| grammar.phrases(seed).take(50).collect::<Vec<_>>();
    assert_eq!(drawn(3), drawn(3));
    assert_ne!(drawn(3), drawn(4));
}

#[test]
fn every_length_is_well_represented() {
    let grammar = Grammar::new();
    let mut counts: HashMap<LengthClass, usize> = HashMap::new();
    for phrase in grammar.phrases(5).take(20_000) {
        *counts.entry(phrase.length_class()).or_default() += 1;
    }
    for class in LengthClass::ALL {
        assert!(counts[&class] > 1_500, "{class}: {}", counts[&class]);
    }
}

#[test]
fn sentences_look_like_sentences_and_phrases_like_phrases() {
    for phrase in Grammar::new().phrases(6).take(20_000) {
        let Phrase { chinese, english, chinese_words } = &phrase;
        assert_eq!(chinese.ends_with('。'), english.ends_with('.'), "{phrase:?}");
        assert_eq!(chinese.ends_with("吗？"), english.ends_with('?'), "{phrase:?}");
        if english.ends_with(['.', '?']) {
            assert!(english.starts_with(|first: char| first.is_ascii_uppercase()), "{phrase:?}");
        } else {
            assert!(english.starts_with(|first: char| first.is_ascii_lowercase()), "{phrase:?}");
        }
        assert!(!english.contains("  ") && !chinese.contains(' ') && english.is_ascii(), "{phrase:?}");
        assert_eq!(&chinese_words.concat(), chinese);
    }
}

#[test]
fn the_article_before_a_vowel_sound_is_never_a() {
    for phrase in Grammar::new().phrases(7).take(20_000) {
        let words: Vec<&str> = phrase.english.split(' ').collect();
        for pair in words.windows(2) {
            let next = pair[1].trim_end_matches(['.', ',', '?']);
            if ["a", "an", "A", "An"].contains(&pair[0]) {
                assert_eq!(pair[0].to_lowercase(), article::article(next), "{}", phrase.english);
            }
        }
    }
}

/// `cargo test -p heedful grammar::tests::samples -- --ignored --nocapture`
#[test]
#[ignore = "prints phrases for people to read"]
fn samples() {
    for phrase in Grammar::new().phrases(8).take(100) {
        println!("{}\t{}", phrase.chinese, phrase.english);
    }
}
