//! Guessing what a misspelt name was meant to be.

/// The candidate a person most likely meant by `word`: the same but for case, or few changes away.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let most = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= most && *distance < candidate.chars().count())
        .min_by(|(a, first), (b, second)| {
            let likeness = |text: &str| strsim::jaro_winkler(word, text);
            a.cmp(b).then_with(|| likeness(second).total_cmp(&likeness(first)))
        })
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn the_nearest_name_is_found_and_a_far_one_is_not() {
        let names = ["queueName", "endpoint", "path", "batchSize", "accessKeyId", "accessKeySecret"];
        assert_eq!(nearest("queuename", names), Some("queueName"));
        assert_eq!(nearest("quueName", names), Some("queueName"));
        assert_eq!(nearest("batch-size", names), Some("batchSize"));
        assert_eq!(nearest("accessKeyID", names), Some("accessKeyId"));
        assert_eq!(nearest("pth", names), Some("path"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("", names), None);
    }
}
