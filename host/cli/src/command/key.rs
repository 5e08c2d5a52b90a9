//! `wattle key create|list|revoke`.

use wattle_api::document::key::{
    CreatedKeyDocument, KeyDocument, NewKeyDocument, RevokedKeysDocument,
};
use wattle_api::guard::scope::KeyScope;

use crate::args::{KeyCommand, KeyCreateArgs, KeyRevokeArgs};
use crate::client::{Client, Preload, encode_segment};
use crate::command::format;
use crate::config::{ByteSize, Config};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{Output, Table};

/// Path of the keys in the API.
const PATH: &str = "/api/v1/keys";

pub(super) async fn keys(
    config: Config,
    command: KeyCommand,
    output: Output,
) -> Result<Exit, Error> {
    let client = Client::open(config, Preload::Store).await?;
    let result = match command {
        KeyCommand::Create(args) => create(&client, &args, output).await,
        KeyCommand::List => list(&client, output).await,
        KeyCommand::Revoke(args) => revoke(&client, &args, output).await,
    };
    client.close().await;
    result
}

async fn create(client: &Client, args: &KeyCreateArgs, output: Output) -> Result<Exit, Error> {
    let made: CreatedKeyDocument = client.post(PATH, &NewKeyDocument::from(args)).await?;
    output.data(&made, |made| made.key.clone());
    Output::note(&format!(
        "this is the key `{}` ({}); save it now, it is not shown again",
        made.known.name, made.known.id
    ));
    let is_operators = made.known.tenant.is_none() && made.known.scopes.contains(&KeyScope::Admin);
    if client.is_remote() && !is_operators {
        Output::note(
            "the server now requires a key for every request; create further keys with a key that \
             has the scope `admin`, or while no server runs",
        );
    }
    Ok(Exit::Ok)
}

async fn list(client: &Client, output: Output) -> Result<Exit, Error> {
    let keys: Vec<KeyDocument> = client.get(PATH).await?;
    output.data(&keys, |keys| {
        let mut table = Table::new(&[
            "id",
            "name",
            "tenant",
            "scopes",
            "rate",
            "body",
            "created",
            "expires",
            "used",
            "created by",
        ]);
        for key in keys {
            table.row(row(key));
        }
        table.render()
    });
    Ok(Exit::Ok)
}

fn row(key: &KeyDocument) -> [String; 10] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    let scopes: Vec<_> = key.scopes.iter().map(ToString::to_string).collect();
    [
        key.id.clone(),
        key.name.clone(),
        or_dash(key.tenant.clone()),
        scopes.join(","),
        or_dash(key.rate.map(|rate| rate.to_string())),
        or_dash(key.body_limit_bytes.map(|bytes| ByteSize(bytes).to_string())),
        format::local_time(key.created_ms),
        key.expires_ms.map_or_else(|| "never".into(), format::local_time),
        or_dash(key.used_ms.map(format::local_time)),
        or_dash(key.made_by.clone()),
    ]
}

async fn revoke(client: &Client, args: &KeyRevokeArgs, output: Output) -> Result<Exit, Error> {
    let KeyRevokeArgs { id, made, open } = args;
    let path = format!("{PATH}/{}?made={made}&open={open}", encode_segment(id));
    let done: RevokedKeysDocument = client.delete_with_response(&path).await?;
    output.data(&done, |done| {
        let lines: Vec<_> = done.revoked.iter().map(|id| format!("revoked key {id}")).collect();
        lines.join("\n")
    });
    if !done.left.is_empty() {
        Output::note(&format!(
            "keys that were created with this key are still valid: {}; after a leak, also revoke \
             them with `wattle key revoke {id} --made`",
            done.left.join(", ")
        ));
    }
    Ok(Exit::Ok)
}
