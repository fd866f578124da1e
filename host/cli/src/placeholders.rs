//! What stands in braces in the places of sinks: `{board}`, `{run}` and others, which are replaced.

/// Refuses a place with something else in braces than `known`: it would be part of the name of a file.
///
/// # Errors
/// What was expected.
pub fn check(place: &str, known: &[&str]) -> Result<(), String> {
    let words = place.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(word, _)| word));
    let is_word = |word: &&str| !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    match words.filter(is_word).find(|word| !known.contains(word)) {
        Some(word) => {
            let known: Vec<_> = known.iter().map(|known| format!("{{{known}}}")).collect();
            Err(format!("`{{{word}}}` is replaced by nothing; expected {}", known.join(", ")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn unknown_words_are_refused() {
        for good in ["a", "{feb}.dat", "a{}", "a{9}", "{", "}{feb}{", "{x y}"] {
            assert_eq!(check(good, &["feb"]), Ok(()), "{good}");
        }
        for bad in ["{board}", "a/{feb}{baord}.dat", "{Feb}"] {
            assert!(check(bad, &["feb", "time"]).unwrap_err().ends_with("expected {feb}, {time}"), "{bad}");
        }
    }
}
