//! `ringfence session`: shells that keep their state.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use ringfence_wire::v1;
use ringfence_wire::v1::exec_input::Content;

use super::attached::attached;
use super::connect::{ConnectArgs, Server};
use super::process::print_log;
use super::sandbox::exec::{HowArgs, over};
use super::signals::{FORWARDED, Signals};
use super::trouble::told;
use super::{runtime, sandbox, show};
use crate::failure::{Failure, NOT_RUN};
use crate::shape_args::variables;

/// Keep shells in a sandbox: directory, variables, functions and jobs stay between commands
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  ringfence session create sb_0123456789abcdef --name work
  ringfence session exec work --sandbox sb_0123456789abcdef 'cd src && export X=1'
  ringfence session exec work --sandbox sb_0123456789abcdef 'echo $PWD $X'
  ringfence session rm sess_0123456789abcdef")]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    connect: ConnectArgs,

    /// Print answers as JSON
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    command: SessionCommand,
}

/// A session by its id, or by its name and its sandbox.
#[derive(Debug, Args)]
struct Which {
    /// The session: its id, or its name together with --sandbox
    session: String,

    /// The sandbox, where the session is named by its name
    #[arg(long, value_name = "ID")]
    sandbox: Option<String>,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    /// Start a shell
    Create {
        /// The sandbox
        sandbox: String,
        /// What to call it
        #[arg(long)]
        name: Option<String>,
        /// bash, sh or another that is there
        #[arg(long)]
        shell: Option<String>,
        #[command(flatten)]
        how: HowArgs,
    },
    /// List the sessions of a sandbox
    Ls {
        /// The sandbox
        sandbox: String,
    },
    /// Show one session
    Show {
        #[command(flatten)]
        which: Which,
    },
    /// Run a text in the session's shell, with its output and exit code as one's own
    Exec {
        #[command(flatten)]
        which: Which,
        /// What to run, as it would be typed
        text: String,
        /// Pass standard input on
        #[arg(long, short)]
        interactive: bool,
        /// Start the shell again if it has ended
        #[arg(long)]
        restart: bool,
        #[command(flatten)]
        how: HowArgs,
    },
    /// End a session and everything it started
    Rm {
        #[command(flatten)]
        which: Which,
    },
    /// Print what the jobs of a session have printed between commands
    Log {
        #[command(flatten)]
        which: Which,
        /// Go on as more is printed
        #[arg(long, short)]
        follow: bool,
    },
}

pub(crate) fn run(args: &SessionArgs) -> Result<ExitCode, Failure> {
    let runs = matches!(args.command, SessionCommand::Exec { .. });
    let done = runtime()?.block_on(async {
        let server = args.connect.connect().await?;
        match &args.command {
            SessionCommand::Exec { .. } => exec(&server, &args.command).await,
            command => act(&server, args.json, command).await.map(|()| ExitCode::SUCCESS),
        }
    });
    done.map_err(|failure| if runs { failure.with_code(NOT_RUN) } else { failure })
}

impl Which {
    fn names(&self) -> (String, String) {
        (self.session.clone(), self.sandbox.clone().unwrap_or_default())
    }
}

async fn act(server: &Server, json: bool, command: &SessionCommand) -> Result<(), Failure> {
    let mut sandboxes = server.sandboxes();
    match command {
        SessionCommand::Create { sandbox, name, shell, how } => {
            let request = v1::CreateSessionRequest {
                sandbox_id: sandbox.clone(),
                shell: shell.clone().unwrap_or_default(),
                env: variables(&how.env)?,
                name: name.clone().unwrap_or_default(),
                cwd: how.workdir.clone().unwrap_or_default(),
                timeout: how.timeout.as_deref().map(sandbox::exec::duration).transpose()?,
            };
            let made = sandboxes.create_session(request).await.map_err(told)?.into_inner();
            show::made(json, &made, &made.id)
        }
        SessionCommand::Ls { sandbox } => {
            let request = v1::ListSessionsRequest { sandbox_id: sandbox.clone() };
            let found = sandboxes.list_sessions(request).await.map_err(told)?.into_inner();
            list(json, &found.sessions)
        }
        SessionCommand::Show { which } => {
            let (session_id, sandbox_id) = which.names();
            let request = v1::GetSessionRequest { session_id, sandbox_id };
            let found = sandboxes.get_session(request).await.map_err(told)?.into_inner();
            show::one(json, &found, fields)
        }
        SessionCommand::Rm { which } => {
            let (session_id, sandbox_id) = which.names();
            let request = v1::DestroySessionRequest { session_id, sandbox_id };
            sandboxes.destroy_session(request).await.map_err(told).map(drop)
        }
        SessionCommand::Log { which, follow } => {
            let (session_id, sandbox_id) = which.names();
            let request =
                v1::SessionLogRequest { session_id, sandbox_id, from: 0, follow: *follow };
            let chunks = sandboxes.session_log(request).await.map_err(told)?.into_inner();
            print_log(chunks).await.map(drop)
        }
        SessionCommand::Exec { .. } => Ok(()),
    }
}

async fn exec(server: &Server, command: &SessionCommand) -> Result<ExitCode, Failure> {
    let SessionCommand::Exec { which, text, interactive, restart, how } = command else {
        return Ok(ExitCode::SUCCESS);
    };
    let (session_id, sandbox_id) = which.names();
    let command = v1::SessionExecRequest {
        session_id,
        sandbox_id,
        command: text.clone(),
        timeout: how.timeout.as_deref().map(sandbox::exec::duration).transpose()?,
        env: variables(&how.env)?,
        cwd: how.workdir.clone().unwrap_or_default(),
        restart: *restart,
        ..Default::default()
    };
    let signals = Signals::watch(&FORWARDED)?;
    let result = attached(server, Content::SessionCommand(command), *interactive, signals).await?;
    Ok(over(&result))
}

fn list(json: bool, sessions: &[v1::Session]) -> Result<(), Failure> {
    let titles = ["ID", "NAME", "STATUS", "SHELL", "CWD", "USED"];
    show::list(json, sessions, &titles, |session| {
        vec![
            session.id.clone(),
            session.name.clone(),
            status(session),
            session.shell.clone(),
            session.cwd.clone(),
            show::ago(session.last_used_at.as_ref()),
        ]
    })
}

fn status(session: &v1::Session) -> String {
    match session.busy {
        true => "busy".into(),
        false => show::word(session.status().as_str_name(), "SESSION_STATUS_"),
    }
}

fn fields(session: &v1::Session) -> Vec<(&'static str, String)> {
    vec![
        ("id", session.id.clone()),
        ("name", session.name.clone()),
        ("sandbox", session.sandbox_id.clone()),
        ("status", status(session)),
        ("shell", session.shell.clone()),
        ("cwd", session.cwd.clone()),
        ("created", show::ago(session.created_at.as_ref())),
        ("used", show::ago(session.last_used_at.as_ref())),
    ]
}
