//! The same promises on every kind of host: as root and as an ordinary user, on other filesystems,
//! on full disks, with few descriptors, and for another owner.

mod filesystems;
mod limits;
mod owner;
mod site;
mod users;
