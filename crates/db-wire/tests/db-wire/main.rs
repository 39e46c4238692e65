//! Both protocols, message by message. One binary: linking each file by itself would take longer than running it.

mod mysql_class;
mod postgres_class;
mod reply;
