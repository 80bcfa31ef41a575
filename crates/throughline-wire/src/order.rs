//! Where the blocks of a streamed answer stand in it, which need not be the order in which they began.

use throughline_core::{BlockId, Frame};

/// The places of the blocks of one answer.
#[derive(Debug, Default)]
pub(crate) struct Order {
    places: Vec<(u64, BlockId)>,
    last: u64,
}

impl Order {
    /// Notes a block that begins, and the index that the backend gives it; without one it stands behind all
    /// that came before it.
    pub(crate) fn note(&mut self, index: Option<u64>, block: BlockId) {
        let place = index.unwrap_or(self.last);
        self.last = self.last.max(place);
        self.places.push((place, block));
    }

    /// Returns the frame that says in which order the blocks stand, if it is not the one in which they began.
    pub(crate) fn frame(&self) -> Option<Frame> {
        if self.places.is_sorted_by_key(|(place, _)| *place) {
            return None;
        }
        let mut places = self.places.clone();
        places.sort_by_key(|(place, _)| *place);
        Some(Frame::Ordered(places.into_iter().map(|(_, block)| block).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(indices: &[Option<u64>]) -> Option<Frame> {
        let mut order = Order::default();
        indices.iter().zip(0..).for_each(|(index, block)| order.note(*index, block));
        order.frame()
    }

    #[test]
    fn an_order_is_told_only_where_it_differs() {
        assert_eq!(ordered(&[Some(0), None, Some(1), Some(1), Some(4)]), None);
        assert_eq!(ordered(&[Some(1), Some(0), Some(2)]), Some(Frame::Ordered(vec![1, 0, 2])));
        assert_eq!(ordered(&[None, Some(1), Some(0)]), Some(Frame::Ordered(vec![0, 2, 1])));
    }
}
