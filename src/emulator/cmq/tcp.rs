//! Connections that speak frames.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, tcp::OwnedWriteHalf},
    sync::Mutex,
    task::JoinSet,
};

use super::{
    Cmq, access, actions,
    answer::{Code, INVALID_HANDLE, LOGGED_IN, MISSING, NO_MESSAGE, NOT_LOGGED_IN, OK, OUT_OF_RANGE, Refusal},
    id_number, read_handle, write_handle,
};
use crate::{
    connectors::cmq::wire::{
        CmqProto, Command, frame,
        proto::{BatchPulled, DeleteResult, PulledMessage},
    },
    emulator::{
        cell::{QueueCell, Receive},
        message::Delivery,
        orders::{ForRequest, Refused, Through},
        state::lock,
    },
};

/// Read at once, if there is so much.
const CHUNK: usize = 64 << 10;

/// A connection as the calls on it share it.
#[derive(Debug)]
struct Link {
    cmq: Arc<Cmq>,
    writer: Mutex<OwnedWriteHalf>,
}

/// What becomes of the connection after a call.
#[derive(Debug, PartialEq, Eq)]
enum After {
    Stays,
    Cut,
}

/// A call that was looked at.
enum Work {
    /// It was done, or refused.
    Done(Box<Result<CmqProto, Refusal>>),
    /// It may have to wait.
    Pull(Arc<QueueCell>, Receive),
}

impl Work {
    fn done(result: Result<CmqProto, Refusal>) -> Self {
        Self::Done(Box::new(result))
    }
}

/// Answers the calls of a connection, each as soon as it can be: a pull that waits holds up no other call.
pub(super) async fn serve(cmq: Arc<Cmq>, stream: TcpStream) {
    let (mut reader, writer) = stream.into_split();
    let link = Arc::new(Link { cmq, writer: Mutex::new(writer) });
    // Ends with the connection, and all that waits in it.
    let mut calls = JoinSet::new();
    let mut received = BytesMut::new();
    let mut is_authenticated = false;
    loop {
        loop {
            match frame::decode(&mut received) {
                Ok(Some(message)) => link.take(message, &mut is_authenticated, &mut calls),
                Ok(None) => break,
                Err(error) => {
                    tracing::debug!(%error, "emulator: a frame cannot be read");
                    return;
                }
            }
        }
        received.reserve(CHUNK);
        tokio::select! {
            read = reader.read_buf(&mut received) => if !matches!(read, Ok(1..)) { return },
            Some(after) = calls.join_next() => if !matches!(after, Ok(After::Stays)) { return },
        }
    }
}

impl Link {
    /// Does at once what need not wait, so that sends and deletes are done in their order.
    fn take(self: &Arc<Self>, message: CmqProto, is_authenticated: &mut bool, calls: &mut JoinSet<After>) {
        let head = CmqProto { seqno: message.seqno, cmd: message.cmd, ..CmqProto::default() };
        let is = |command: Command| message.cmd == command.number();
        if is(Command::Heartbeat) {
            return;
        }
        let (orders, work) = if is(Command::Auth) {
            (ForRequest::default(), Work::done(self.authenticate(&message, is_authenticated)))
        } else if *is_authenticated {
            self.begin(message, is_authenticated)
        } else {
            (ForRequest::default(), Work::done(Err(NOT_LOGGED_IN.into())))
        };
        calls.spawn(Arc::clone(self).finish(head, orders, work));
    }

    fn authenticate(&self, message: &CmqProto, is_authenticated: &mut bool) -> Result<CmqProto, Refusal> {
        let auth = message.tcp_auth.as_ref().ok_or(MISSING)?;
        if let Some(key) = &self.cmq.state.credentials {
            access::check_connection(key, auth)?;
        }
        if std::mem::replace(is_authenticated, true) { Err(LOGGED_IN.into()) } else { Ok(CmqProto::default()) }
    }

    fn begin(&self, message: CmqProto, is_authenticated: &mut bool) -> (ForRequest, Work) {
        let cell = queue_name(&message).map(|name| actions::find(&self.cmq.state, name));
        let cell = match cell {
            Some(Ok(cell)) => cell,
            Some(Err(no_queue)) => return (ForRequest::default(), Work::done(Err(no_queue.into()))),
            None => {
                let no_action = Code::no_action(&message.cmd.to_string());
                return (ForRequest::default(), Work::done(Err(no_action.into())));
            }
        };
        let orders = lock(&cell.queue).orders.for_request(Through::CmqTcp);
        if orders.refusal == Some(Refused::NotAuthenticated) {
            *is_authenticated = false;
        }
        let work = if orders.refusal.is_some() {
            // It is known why, and told in time.
            Work::done(Ok(CmqProto::default()))
        } else {
            self.act(cell, message).unwrap_or_else(|refusal| Work::done(Err(refusal)))
        };
        (orders, work)
    }

    fn act(&self, cell: Arc<QueueCell>, message: CmqProto) -> Result<Work, Refusal> {
        let clock = &self.cmq.state.clock;
        let seconds = |wait: Option<i32>| wait.map(u32::try_from).transpose().map_err(|_| OUT_OF_RANGE);
        if let Some(send) = message.tcp_send_msg {
            let msgids = actions::send(clock, &cell, vec![send.msg_body.unwrap_or_default()], send.delay_seconds)?;
            return Ok(Work::done(Ok(CmqProto { msgids, ..CmqProto::default() })));
        }
        if let Some(send) = message.tcp_batch_send_msg {
            let msgids = actions::send(clock, &cell, send.msg_body, send.delay_seconds)?;
            return Ok(Work::done(Ok(CmqProto { msgids, ..CmqProto::default() })));
        }
        if let Some(pull) = message.tcp_pull_msg {
            let wait = seconds(pull.poll_wait_seconds)?;
            return Ok(Work::Pull(cell, Receive { most: 1, wait, visibility: pull.visible_timeout }));
        }
        if let Some(pull) = message.tcp_batch_pull_msg {
            let wait = seconds(pull.poll_wait_seconds)?;
            // A number below 0 is as wrong as 0.
            let most = usize::try_from(pull.num_msg).unwrap_or(0);
            return Ok(Work::Pull(cell, Receive { most, wait, visibility: pull.visible_timeout }));
        }
        if let Some(delete) = message.tcp_delete_msg {
            actions::delete(clock, &cell, read_handle(delete.receipt_handle))?;
            return Ok(Work::done(Ok(CmqProto::default())));
        }
        let delete = message.tcp_batch_delete_msg.ok_or(MISSING)?;
        let handles: Vec<_> = delete.receipt_handle_list.iter().map(|handle| read_handle(*handle)).collect();
        let (code, deleted) = actions::batch_delete(clock, &cell, &handles)?;
        let failed = delete.receipt_handle_list.into_iter().zip(deleted).filter(|(_, deleted)| !deleted);
        let del_result = failed.map(|(receipt_handle, _)| DeleteResult {
            receipt_handle,
            err_code: INVALID_HANDLE.code,
            err_msg: INVALID_HANDLE.message(),
        });
        let answer = CmqProto { del_result: del_result.collect(), ..CmqProto::default() };
        Ok(Work::done(Ok(with_code(answer, &code))))
    }

    async fn finish(self: Arc<Self>, head: CmqProto, orders: ForRequest, work: Work) -> After {
        let is_batch = head.cmd == Command::BatchPull.number();
        let result = match (orders.refused().await, work) {
            (Some(Refused::NotAuthenticated), _) => Err(NOT_LOGGED_IN.into()),
            (Some(refused), _) => Err(refused.into()),
            (None, Work::Done(result)) => *result,
            (None, Work::Pull(cell, asked)) => {
                actions::receive(&self.cmq.state.clock, &cell, asked).await.map(|messages| pulled(&messages, is_batch))
            }
        };
        if !orders.hold_back().await {
            return After::Stays;
        }
        let answer = match result {
            // Only what is no plain success has a code by now.
            Ok(answer) if answer.result.is_some() => answer,
            Ok(answer) => with_code(answer, &OK),
            Err(Refusal::Code(code)) => with_code(CmqProto::default(), &code),
            Err(Refusal::Cut | Refusal::Unavailable) => return After::Cut,
        };
        let request_id = Some(lock(&self.cmq.state.random).u64(1..1 << 53));
        let answer = CmqProto { seqno: head.seqno, cmd: head.cmd, request_id, ..answer };
        match self.writer.lock().await.write_all(&frame::encode(&answer)).await {
            Ok(()) => After::Stays,
            Err(_) => After::Cut,
        }
    }
}

/// The queue that a call is about; `None`: it is no call about a queue.
fn queue_name(message: &CmqProto) -> Option<&str> {
    let send = || Some(&message.tcp_send_msg.as_ref()?.queue_name);
    let batch_send = || Some(&message.tcp_batch_send_msg.as_ref()?.queue_name);
    let pull = || Some(&message.tcp_pull_msg.as_ref()?.queue_name);
    let batch_pull = || Some(&message.tcp_batch_pull_msg.as_ref()?.queue_name);
    let delete = || Some(&message.tcp_delete_msg.as_ref()?.queue_name);
    let batch_delete = || Some(&message.tcp_batch_delete_msg.as_ref()?.queue_name);
    let name = send().or_else(batch_send).or_else(pull).or_else(batch_pull).or_else(delete).or_else(batch_delete);
    name.map(String::as_str)
}

/// That a queue is empty is told by the module's code: the Java SDK takes nothing else for that. Everything else is
/// told by the documented one; what the live service answers is not known.
fn with_code(answer: CmqProto, code: &Code) -> CmqProto {
    let result = if *code == NO_MESSAGE { code.module } else { code.code };
    CmqProto { result: Some(result), error: Some(code.message()), ..answer }
}

fn pulled(messages: &[Delivery], is_batch: bool) -> CmqProto {
    let mut msg_list = messages.iter().map(|Delivery { message, receipt }| PulledMessage {
        msg_id: id_number(message.id),
        receipt_handle: Some(write_handle(receipt.handle)),
        msg_body: Some(message.body.clone()),
        enqueue_time: Some(message.enqueue_ms / 1000),
        next_visible_time: Some(receipt.next_visible_ms / 1000),
        first_dequeue_time: Some(message.first_dequeue_ms / 1000),
        dequeue_count: Some(message.dequeue_count.into()),
        ..PulledMessage::default()
    });
    if is_batch {
        CmqProto { batch_pull_rsp: Some(BatchPulled { msg_list: msg_list.collect() }), ..CmqProto::default() }
    } else {
        CmqProto { pull_rsp: msg_list.next(), ..CmqProto::default() }
    }
}
