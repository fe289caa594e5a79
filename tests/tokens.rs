//! The estimate of tokens stays near a real byte-pair count; its error is printed and bounded.

#[cfg(feature = "tokenizer")]
#[test]
fn the_estimate_is_within_its_stated_error_of_byte_pairs() {
    use hermes_lab::cache::tokens::{byte_pairs, estimate};

    let samples = [
        ("English", include_str!("samples/english.txt"), 7),
        ("code", include_str!("samples/code.txt"), 9),
        ("Chinese", include_str!("samples/chinese.txt"), 2),
    ];
    for (name, text, percent) in samples {
        let (ours, real) = (estimate(text), byte_pairs(text));
        println!("{name}: {ours} estimated, {real} counted, {} characters", text.chars().count());
        assert!(ours.abs_diff(real) * 100 <= real * percent, "{name}: {ours} against {real}");
    }
}

#[test]
fn wide_characters_weigh_more_than_letters() {
    use hermes_lab::cache::tokens::{Counter, estimate};

    assert_eq!(estimate(&"字".repeat(1_000)), 735);
    assert_eq!(estimate(&"a".repeat(1_000)), 250);
    assert_eq!(Counter::Log.count("anything", Some(7)), Some(7));
    assert_eq!(Counter::Log.count("anything", None), None);
}
