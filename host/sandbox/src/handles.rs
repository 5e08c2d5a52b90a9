//! Resources that guests hold by handle. They are public because the generated bindings re-export
//! them.

use wattle_run::gate::stream::CompletionStream;
use wattle_run::gate::transaction::Transaction;

/// A guest's handle of a stream. Dropping it cancels the model call.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct StreamHandle(pub(crate) CompletionStream);

/// A guest's handle of a transaction; `None` once the transaction has ended.
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct TransactionHandle(pub(crate) Option<Transaction>);
