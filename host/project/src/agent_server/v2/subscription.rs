//! Subscriptions to a thread.

use std::collections::BTreeSet;

/// The error of an invalid subscription.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubscriptionError {
    /// The name is not a channel.
    #[error("`{0}` is not a channel")]
    Channel(String),
    /// The subscription has no channels.
    #[error("a subscription needs `channels`")]
    NoChannels,
}

/// A channel, which selects events of one kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    /// The state after each superstep.
    Values,
    /// The writes of each task.
    Updates,
    /// Messages as blocks.
    Messages,
    /// Tool calls.
    Tools,
    /// Starts and ends of runs and subgraphs.
    Lifecycle,
    /// Interrupts and their answers.
    Input,
    /// Starts and ends of tasks.
    Tasks,
    /// Checkpoints, without their values.
    Checkpoints,
    /// Custom events and progress of nodes: all of them, or only those with this name.
    Custom(Option<String>),
}

impl Channel {
    /// Returns the channel with a name.
    ///
    /// # Errors
    ///
    /// [`SubscriptionError::Channel`] if no channel has this name.
    pub fn of(name: &str) -> Result<Self, SubscriptionError> {
        Ok(match name {
            "values" => Self::Values,
            "updates" => Self::Updates,
            "messages" => Self::Messages,
            "tools" => Self::Tools,
            "lifecycle" => Self::Lifecycle,
            "input" => Self::Input,
            "tasks" => Self::Tasks,
            "checkpoints" => Self::Checkpoints,
            "custom" => Self::Custom(None),
            _ => match name.strip_prefix("custom:") {
                Some(name) if !name.is_empty() => Self::Custom(Some(name.to_owned())),
                _ => return Err(SubscriptionError::Channel(name.to_owned())),
            },
        })
    }
}

/// The filter of a client on the events of a thread.
#[derive(Clone, Debug, Default)]
pub struct Subscription {
    channels: BTreeSet<Channel>,
    /// Namespaces of the selected graphs. A selected graph includes its subgraphs. Empty selects
    /// all graphs.
    namespaces: Vec<Vec<String>>,
    /// Maximum number of levels below the selected graphs, or below the root graph if `namespaces`
    /// is empty. `None` for no maximum.
    depth: Option<usize>,
}

impl Subscription {
    /// Creates a subscription.
    ///
    /// # Errors
    ///
    /// Returns [`SubscriptionError`] if a name is not a channel, or if `channels` is empty.
    pub fn new(
        channels: &[String],
        namespaces: Vec<Vec<String>>,
        depth: Option<usize>,
    ) -> Result<Self, SubscriptionError> {
        let channels: BTreeSet<Channel> =
            channels.iter().map(|name| Channel::of(name)).collect::<Result<_, _>>()?;
        if channels.is_empty() {
            return Err(SubscriptionError::NoChannels);
        }
        Ok(Self { channels, namespaces, depth })
    }

    /// Returns true if the subscription has any channel other than `lifecycle` and `input`.
    pub fn has_content(&self) -> bool {
        self.channels.iter().any(|it| !matches!(it, Channel::Lifecycle | Channel::Input))
    }

    /// Returns true if the subscription selects all events of runs in all graphs.
    pub fn is_whole(&self) -> bool {
        let all = [
            Channel::Values,
            Channel::Updates,
            Channel::Messages,
            Channel::Tools,
            Channel::Tasks,
            Channel::Checkpoints,
            Channel::Custom(None),
        ];
        let has_all = all.iter().all(|channel| self.channels.contains(channel));
        has_all && self.namespaces.is_empty() && self.depth.is_none()
    }

    /// Returns true if the subscription contains a channel.
    pub(super) fn has(&self, channel: &Channel) -> bool {
        let all =
            matches!(channel, Channel::Custom(_)) && self.channels.contains(&Channel::Custom(None));
        all || self.channels.contains(channel)
    }

    /// Returns true if the subscription selects the events of a channel in a graph.
    pub(super) fn wants(&self, channel: &Channel, levels: &[String]) -> bool {
        self.has(channel) && self.sees(levels)
    }

    fn sees(&self, levels: &[String]) -> bool {
        let near = |above: usize| self.depth.is_none_or(|depth| levels.len() - above <= depth);
        if self.namespaces.is_empty() {
            return near(0);
        }
        self.namespaces.iter().any(|prefix| {
            let is_below = prefix.len() <= levels.len()
                && prefix.iter().zip(levels).all(|(wanted, level)| is_level(wanted, level));
            is_below && near(prefix.len())
        })
    }
}

/// Returns true if a name selects a level of a namespace. The name of a node without a task selects
/// all its tasks.
fn is_level(wanted: &str, level: &str) -> bool {
    wanted == level || level.split(':').next() == Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn namespaces_select_graphs_and_their_subgraphs() {
        for (namespaces, depth, level, sees) in [
            (vec![], None, levels(&["a:1", "b:2"]), true),
            (vec![], Some(1), levels(&["a:1", "b:2"]), false),
            (vec![levels(&[])], Some(0), levels(&[]), true),
            (vec![levels(&["a:1"])], None, levels(&["a:1", "b:2"]), true),
            (vec![levels(&["a"])], Some(0), levels(&["a:1"]), true),
            (vec![levels(&["a:1"])], Some(0), levels(&["a:1", "b:2"]), false),
            (vec![levels(&["a:1"])], None, levels(&["a:2"]), false),
            (vec![levels(&["a:1"])], None, levels(&[]), false),
        ] {
            let channels = levels(&["values"]);
            let subscription = Subscription::new(&channels, namespaces, depth).unwrap();
            assert_eq!(subscription.wants(&Channel::Values, &level), sees, "{level:?}");
            assert!(!subscription.wants(&Channel::Tools, &level));
        }
    }

    #[test]
    fn custom_events_are_selected_all_or_by_name() {
        let read = |names: &[&str]| Subscription::new(&levels(names), Vec::new(), None);
        let progress = Channel::Custom(Some("progress".to_owned()));
        assert!(read(&["custom"]).unwrap().has(&progress));
        assert!(read(&["custom:progress"]).unwrap().has(&progress));
        assert!(!read(&["custom:other"]).unwrap().has(&progress));
        assert_eq!(read(&[]).unwrap_err(), SubscriptionError::NoChannels);
        for wrong in ["nothing", "custom:"] {
            assert_eq!(read(&[wrong]).unwrap_err(), SubscriptionError::Channel(wrong.to_owned()));
        }
    }
}
