//! Calls on the warden's socket, each on a thread of its own.

use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ringfence_link::VERSION;
use ringfence_link::channel::{Channel, TRUSTED_LIMIT};
use ringfence_link::warden::{Call, Code, Failure, Reply, Request};

use crate::sandbox::{Sandbox, failure};

/// Stack of a call, in addresses; memory is what is used of it. Deep directories need some.
const STACK: usize = 2 << 20;

/// Takes calls until the process ends.
pub(crate) fn accept(sandbox: &Arc<Sandbox>, listener: &UnixListener) {
    for connection in listener.incoming() {
        let Ok(connection) = connection else {
            // Out of descriptors for the moment: others have to end first.
            std::thread::sleep(std::time::Duration::from_millis(10));
            continue;
        };
        let open = OpenCall::of(sandbox);
        let call = move || answer(&open.0, connection);
        let _ = std::thread::Builder::new().name("call".into()).stack_size(STACK).spawn(call);
    }
}

/// A call that counts as open for as long as this lives.
struct OpenCall(Arc<Sandbox>);

impl OpenCall {
    fn of(sandbox: &Arc<Sandbox>) -> Self {
        sandbox.calls.fetch_add(1, Ordering::AcqRel);
        Self(sandbox.clone())
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

fn answer(sandbox: &Arc<Sandbox>, connection: UnixStream) {
    let caller = Channel::new(connection, TRUSTED_LIMIT);
    let Ok((call, _)) = caller.receive::<Call>() else { return };
    crate::trace::set(call.trace);
    let reply = match call.version {
        VERSION => handle(sandbox, &caller, call.request),
        other => Err(failure(
            Code::Unsupported,
            format!("this sandbox speaks version {VERSION}, the caller {other}"),
        )),
    };
    // A caller that has hung up needs no answer.
    match reply {
        Ok(Some(reply)) => drop(caller.send(&reply, &[])),
        Ok(None) => {}
        Err(error) => drop(caller.send(&Reply::Error(error), &[])),
    }
}

/// The last reply of the call; none if it was sent already.
fn handle(
    sandbox: &Arc<Sandbox>,
    caller: &Channel,
    request: Request,
) -> Result<Option<Reply>, Failure> {
    let reply = match request {
        Request::Info => Reply::Info(Box::new(sandbox.info.clone())),
        Request::Exec(exec) => Reply::Done(Box::new(sandbox.exec(caller, &exec)?)),
        Request::OpenSession(options) => Reply::Session(sandbox.open_session(&options)?),
        Request::Sessions => Reply::Sessions(sandbox.list_sessions()),
        Request::Session { which } => Reply::Session(sandbox.session_info(&which)?),
        Request::SessionExec { which, exec } => {
            sandbox.session_exec(caller, &which, exec)?;
            return Ok(None);
        }
        Request::CloseSession { which } => {
            sandbox.close_session(&which)?;
            Reply::Ok
        }
        Request::SessionLog { which, from, follow } => {
            return sandbox.session_log(caller, &which, (from, follow));
        }
        Request::StartProcess(start) => Reply::Process(sandbox.start_process(&start)?),
        Request::Processes => Reply::Processes(sandbox.list_processes()),
        Request::Process { id } => Reply::Process(sandbox.process_info(&id)?),
        Request::ProcessLog { id, from, follow } => {
            return sandbox.process_log(caller, &id, from, follow);
        }
        Request::WaitProcess { id, until, timeout_ms } => {
            return sandbox.wait_process(caller, &id, &until, timeout_ms);
        }
        Request::KillProcess { id, signal } => {
            sandbox.kill_process(&id, signal)?;
            Reply::Ok
        }
        Request::KillAllProcesses => Reply::Count(sandbox.kill_all_processes()),
        Request::OpenTerminal(open) => Reply::Terminal(sandbox.open_terminal(&open)?),
        Request::Terminals => Reply::Terminals(sandbox.list_terminals()),
        Request::Attach { id } => return sandbox.attach(caller, &id),
        Request::ResizeTerminal { id, rows, columns } => {
            sandbox.resize_terminal(&id, rows, columns)?;
            Reply::Ok
        }
        Request::CloseTerminal { id } => {
            sandbox.close_terminal(&id)?;
            Reply::Ok
        }
        Request::Signal { command, signal } => {
            sandbox.signal_command(&command, signal)?;
            Reply::Ok
        }
        Request::SetPolicy { rules } => {
            sandbox.set_policy(&rules)?;
            Reply::Ok
        }
        Request::File(request) => return sandbox.file_call(caller, request),
        Request::Changes => return sandbox.changes(caller),
        Request::Diff => return sandbox.diff(caller),
        Request::Apply(apply) => return sandbox.apply(caller, &apply),
        Request::Freeze { path } => Reply::Frozen { path: sandbox.freeze_layer(&path)? },
        Request::Connect { port } => {
            let socket = sandbox.inside.connect(port).map_err(crate::sandbox::internal)?;
            let _ = caller.send(&Reply::Connected, &[std::os::fd::AsFd::as_fd(&socket)]);
            return Ok(None);
        }
        Request::Stop => {
            sandbox.stop_and_wait("asked to");
            Reply::Ok
        }
        Request::StopBecause { reason } => {
            sandbox.stop_and_wait(&reason);
            Reply::Ok
        }
        Request::FlushRecord => {
            sandbox.journal.flush().map_err(crate::sandbox::internal)?;
            Reply::Ok
        }
    };
    Ok(Some(reply))
}
