//! Another configuration, put into effect in a gateway that is there already.

use crate::house::Map;
use std::sync::Arc;
use throughline_gateway::config::{Config, Flags, load};
use throughline_gateway::gateway::{Gateway, now};
use throughline_gateway::routing::Listings;
use throughline_gateway::switch;
use throughline_store::{History, Memory, Scope};

const BEFORE: &str = r#"
active = "one"
[[backends]]
name = "one"
dialect = "chat"
base_url = "http://127.0.0.1:9/v1"
api_key = "none"
[[backends]]
name = "two"
dialect = "chat"
base_url = "http://127.0.0.1:9/v1"
api_key = "none"
"#;

fn config(text: &str) -> Config {
    let flags = Flags { config: Some("throughline.toml".into()), ..Flags::default() };
    load(&Map(text.to_owned()), &flags).unwrap_or_else(|errors| panic!("{errors}"))
}

#[tokio::test]
async fn a_reload_undoes_no_switch() {
    let history = Arc::new(Memory::new());
    let gateway =
        Gateway::build(config(BEFORE), Arc::clone(&history) as Arc<dyn History>, None).await.unwrap();
    let pick = switch::checked(&gateway.setup().config, "two", &Listings::new()).unwrap();
    history.append(switch::batch(&Scope::Everywhere, Some(&pick), switch::By::Cli, now())).await.unwrap();
    gateway.refresh().await.unwrap();
    let third = BEFORE.replace("\"one\"", "\"three\"");
    assert_eq!(gateway.reload(config(&third)).unwrap(), [""; 0]);
    let setup = gateway.setup();
    assert_eq!(setup.config.active, "three");
    assert!(setup.egress.contains_key("three") && !setup.egress.contains_key("one"));
    assert_eq!(switch::active(&setup.config, &*gateway.latest_standing().await), "two");
}

#[tokio::test]
async fn what_cannot_change_is_named_and_stays_however_often_it_is_asked_for() {
    let gateway = Gateway::build(config(BEFORE), Arc::new(Memory::new()), None).await.unwrap();
    let listen = gateway.setup().config.listen;
    let other = format!("listen = \"127.0.0.1:9\"\n[store]\nurl = \"sqlite:other.db\"\n{BEFORE}");
    let other = other.replace("active = \"one\"\n", "").replace("listen", "active = \"two\"\nlisten");
    for _ in 0..2 {
        assert_eq!(gateway.reload(config(&other)).unwrap(), ["listen", "store.url"]);
        let setup = gateway.setup();
        assert_eq!((setup.config.listen, setup.config.active.as_str()), (listen, "two"));
    }
    assert_eq!(gateway.reload(config(BEFORE)).unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_configuration_that_cannot_be_set_up_changes_nothing() {
    let gateway = Gateway::build(config(BEFORE), Arc::new(Memory::new()), None).await.unwrap();
    let simulated = BEFORE.replace("http://127.0.0.1:9/v1", "sim:").replace("\"one\"", "\"three\"");
    let error = gateway.reload(config(&simulated)).unwrap_err();
    assert!(error.to_string().contains("backend three: the simulated backend was not started"), "{error}");
    assert_eq!(gateway.setup().config.active, "one");
}
