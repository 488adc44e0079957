//! A future that an object-safe trait can return.

use std::pin::Pin;

/// The boxed future.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
