//! A client of the WebSocket, as small as it can be.

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// An open connection.
pub struct Socket(WebSocketStream<TcpStream>);

/// The frames of one turn; the last one ended it.
#[derive(Debug)]
pub struct Turn(pub Vec<Value>);

impl Socket {
    pub async fn open(url: &str) -> Self {
        Self::open_with(url, &[]).await.unwrap()
    }

    /// Opens a connection with further headers in the handshake; an error is the status of the refusal.
    pub async fn open_with(url: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let address = url.strip_prefix("http://").unwrap();
        let mut request = format!("ws://{address}/v1/responses").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(address).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn send(&mut self, frame: &Value) {
        self.send_message(Message::text(frame.to_string())).await;
    }

    pub async fn send_message(&mut self, message: Message) {
        self.0.send(message).await.unwrap();
    }

    /// Sends a request and reads its turn.
    pub async fn ask(&mut self, frame: &Value) -> Turn {
        self.send(frame).await;
        self.turn().await
    }

    /// Reads one frame.
    pub async fn frame(&mut self) -> Value {
        let message = self.0.next().await.unwrap().unwrap();
        let Message::Text(text) = message else { panic!("{message:?}") };
        serde_json::from_str(&text).unwrap()
    }

    /// Returns the code that the other side closes the connection with, which it must do now.
    pub async fn closed(&mut self) -> u16 {
        let message = self.0.next().await.unwrap().unwrap();
        let Message::Close(Some(close)) = message else { panic!("{message:?}") };
        close.code.into()
    }

    /// Reads frames up to and including the one that ends a turn.
    pub async fn turn(&mut self) -> Turn {
        let mut frames = Vec::new();
        loop {
            let frame = self.frame().await;
            let kind = frame["type"].as_str().unwrap().to_owned();
            frames.push(frame);
            if ["error", "response.completed", "response.incomplete", "response.failed"]
                .contains(&kind.as_str())
            {
                return Turn(frames);
            }
        }
    }
}

impl Turn {
    pub fn last(&self) -> &Value {
        self.0.last().unwrap()
    }

    /// Returns the response of a turn that completed.
    pub fn completed(&self) -> &Value {
        assert_eq!(self.last()["type"], "response.completed", "{}", self.last());
        &self.last()["response"]
    }

    /// Returns the code of a turn that ended with an error frame.
    pub fn code(&self) -> &str {
        let last = self.last();
        assert_eq!(last["type"], "error", "{last}");
        assert!(last["status"].as_u64().is_some_and(|status| status >= 400), "{last}");
        assert!(last["error"]["message"].is_string(), "{last}");
        last["error"]["code"].as_str().unwrap_or_else(|| panic!("{last}"))
    }
}
