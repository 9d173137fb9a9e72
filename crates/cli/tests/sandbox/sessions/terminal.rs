//! The terminal of the shell: for job control, with nobody to answer.

use super::limited;

in_every_shell! {
    fn questions_are_answered_with_the_end_of_input(s) {
        assert_eq!(s.exec(limited("read x </dev/tty", 20_000)).code(), 1);
        let text = "for i in 1 2 3 4 5 6 7 8 9 10; do read x </dev/tty; done; cat /dev/tty";
        let run = s.exec(limited(text, 20_000));
        assert!(!run.outcome.timed_out && run.out().is_empty(), "{run:?}");
    }

    fn a_password_is_not_waited_for(s) {
        for _ in 0..2 {
            let run = s.exec(limited("python3 -c 'import getpass; getpass.getpass()'", 20_000));
            assert!(!run.outcome.timed_out && run.err().contains("EOFError"), "{run:?}");
        }
    }

    fn what_is_written_to_it_goes_nowhere_and_waits_for_nobody(s) {
        let run = s.exec(limited("head -c 300000 /dev/zero >/dev/tty; echo done", 20_000));
        assert_eq!((run.out().as_str(), run.outcome.timed_out), ("done\n", false));
    }

    fn its_modes_are_put_back(s) {
        s.run("stty raw -icanon eof x </dev/tty");
        let run = s.exec(limited("read x </dev/tty; stty -a </dev/tty", 20_000));
        assert!(!run.outcome.timed_out && run.out().contains(" icanon"), "{run:?}");
        assert!(!run.out().contains("eof = x"), "{run:?}");
        let run = s.exec(limited("stty sane </dev/tty; read x </dev/tty", 20_000));
        assert_eq!((run.code(), run.outcome.timed_out), (1, false));
    }

    fn a_command_has_no_terminal_as_its_streams(s) {
        assert_eq!(s.ok("for i in 0 1 2; do test -t $i || printf no; done"), "nonono");
        assert!(s.ok("tty </dev/tty").starts_with("/dev/"));
    }

    fn interrupts_from_inside_do_not_end_the_shell(s) {
        s.ok("v=1");
        s.run("kill -INT $$");
        s.run("kill -TERM $$");
        assert_eq!(s.ok("echo $v"), "1\n");
    }
}
