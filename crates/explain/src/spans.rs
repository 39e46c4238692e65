//! A set of instants, kept as disjoint spans in order.

use danki_record::Span;
use std::collections::BTreeMap;

/// Instants not yet given away (or covered by something).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Instants {
    /// Begin → end; spans neither touch nor overlap.
    spans: BTreeMap<u64, u64>,
}

pub(crate) fn span(from_ns: u64, to_ns: u64) -> Span {
    Span { from_ns, to_ns }
}

impl Instants {
    pub(crate) fn of(whole: Span) -> Instants {
        let mut all = Instants::default();
        all.insert(whole);
        all
    }

    /// Adds a span; empty and backward ones hold no instant.
    pub(crate) fn insert(&mut self, s: Span) {
        if s.to_ns <= s.from_ns {
            return;
        }
        let (mut from, mut to) = (s.from_ns, s.to_ns);
        if let Some((&f, &t)) = self.spans.range(..=from).next_back()
            && t >= from
        {
            (from, to) = (f, to.max(t));
        }
        while let Some((&f, &t)) = self.spans.range(from..=to).next() {
            self.spans.remove(&f);
            to = to.max(t);
        }
        self.spans.insert(from, to);
    }

    /// What of `s` is in the set, in order.
    pub(crate) fn within(&self, s: Span) -> Vec<Span> {
        if s.to_ns <= s.from_ns {
            return Vec::new();
        }
        let before = self.spans.range(..s.from_ns).next_back();
        before
            .into_iter()
            .chain(self.spans.range(s.from_ns..s.to_ns))
            .map(|(&from, &to)| span(from.max(s.from_ns), to.min(s.to_ns)))
            .filter(|piece| piece.from_ns < piece.to_ns)
            .collect()
    }

    /// Removes what of `s` is in the set and returns it.
    pub(crate) fn take(&mut self, s: Span) -> Vec<Span> {
        let taken = self.within(s);
        for piece in &taken {
            let (from, to) = self
                .spans
                .range(..=piece.from_ns)
                .next_back()
                .map(|(&from, &to)| (from, to))
                .expect("the piece was cut from a span of the set");
            self.spans.remove(&from);
            if from < piece.from_ns {
                self.spans.insert(from, piece.from_ns);
            }
            if piece.to_ns < to {
                self.spans.insert(piece.to_ns, to);
            }
        }
        taken
    }

    /// Spans in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Span> {
        self.spans.iter().map(|(&from, &to)| span(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn any_span() -> impl Strategy<Value = Span> {
        (0_u64..60, 0_u64..60).prop_map(|(from, to)| span(from, to))
    }

    fn instants(spans: impl IntoIterator<Item = Span>) -> BTreeSet<u64> {
        spans.into_iter().flat_map(|s| s.from_ns..s.to_ns).collect()
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_instants(put in prop::collection::vec(any_span(), 0..8), out in prop::collection::vec(any_span(), 0..8)) {
            let mut set = Instants::default();
            for s in &put {
                set.insert(*s);
            }
            let mut model = instants(put);
            prop_assert_eq!(instants(set.iter()), model.clone());
            for s in out {
                let (seen, taken) = (set.within(s), set.take(s));
                prop_assert_eq!(&seen, &taken);
                let expect: BTreeSet<u64> = model.intersection(&instants([s])).copied().collect();
                prop_assert_eq!(instants(taken), expect.clone());
                model = model.difference(&expect).copied().collect();
                prop_assert_eq!(instants(set.iter()), model.clone());
            }
        }
    }
}
