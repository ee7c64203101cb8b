//! The requests of the TCP client, without the number that correlates them.

use bytes::Bytes;

use super::{CmqProto, Command, proto};

fn request(command: Command) -> CmqProto {
    CmqProto { cmd: command.number(), ..CmqProto::default() }
}

/// Authenticates a connection.
pub fn authenticate(auth: proto::Auth) -> CmqProto {
    CmqProto { tcp_auth: Some(auth), ..request(Command::Auth) }
}

/// Says that the connection is still wanted. It has no answer.
pub fn heartbeat() -> CmqProto {
    request(Command::Heartbeat)
}

/// Sends bodies, all of them or none. `request_id`: the client's counter of sends.
pub fn send(queue: &str, bodies: Vec<Bytes>, request_id: u64) -> CmqProto {
    let queue_name = queue.to_owned();
    let request_id = Some(request_id);
    match <[Bytes; 1]>::try_from(bodies) {
        Ok([body]) => {
            let send = proto::SendMessage { queue_name, msg_body: Some(body), ..proto::SendMessage::default() };
            CmqProto { request_id, tcp_send_msg: Some(send), ..request(Command::Send) }
        }
        Err(msg_body) => {
            // The SDK always writes a delay here, and none above.
            let send = proto::BatchSend { queue_name, msg_body, delay_seconds: Some(0), ..proto::BatchSend::default() };
            CmqProto { request_id, tcp_batch_send_msg: Some(send), ..request(Command::BatchSend) }
        }
    }
}

/// Receives up to `most` (1 to [`super::MOST_PER_CALL`]) messages.
pub fn batch_pull(queue: &str, most: i32, wait_seconds: i32) -> CmqProto {
    let pull = proto::BatchPull {
        queue_name: queue.to_owned(),
        num_msg: most,
        poll_wait_seconds: Some(wait_seconds),
        visible_timeout: None,
    };
    CmqProto { tcp_batch_pull_msg: Some(pull), ..request(Command::BatchPull) }
}

/// Deletes deliveries, each for itself.
pub fn delete(queue: &str, handles: &[u64]) -> CmqProto {
    let queue_name = queue.to_owned();
    if let [receipt_handle] = *handles {
        let delete = proto::Delete { queue_name, receipt_handle };
        return CmqProto { tcp_delete_msg: Some(delete), ..request(Command::Delete) };
    }
    let delete = proto::BatchDelete { queue_name, receipt_handle_list: handles.to_vec() };
    CmqProto { tcp_batch_delete_msg: Some(delete), ..request(Command::BatchDelete) }
}
