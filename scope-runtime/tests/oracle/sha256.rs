//! SHA-256 (FIPS 180-4), for the digests of profiles that are too large to be listed.

/// The digest in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let primes = first_primes(64);
    let fraction = |root: f64| (root.fract() * 4_294_967_296.0) as u32;
    let constants: Vec<u32> = primes.iter().map(|prime| fraction(cube_root(*prime))).collect();
    let mut state: Vec<u32> = primes[..8].iter().map(|prime| fraction(prime.sqrt())).collect();
    let mut padded = bytes.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - bytes.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let at = padded.len() - 8;
    padded[at..].copy_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
    padded.chunks(64).for_each(|block| mix(&mut state, block, &constants));
    state.iter().map(|word| format!("{word:08x}")).collect()
}

fn first_primes(count: usize) -> Vec<f64> {
    let prime = |n: &u32| (2..*n).all(|divisor| !n.is_multiple_of(divisor));
    (2..).filter(prime).take(count).map(f64::from).collect()
}

/// `cbrt` of the platform is not exact in the last place; one step of Newton makes no difference
/// to the 32 bits that are used.
fn cube_root(value: f64) -> f64 {
    let root = value.cbrt();
    root - (root * root * root - value) / (3.0 * root * root)
}

fn mix(state: &mut [u32], block: &[u8], constants: &[u32]) {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.as_chunks().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    for at in 16..64 {
        let (a, b) = (words[at - 15], words[at - 2]);
        let small = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
        let large = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
        words[at] = words[at - 16].wrapping_add(small).wrapping_add(words[at - 7]).wrapping_add(large);
    }
    let mut s: [u32; 8] = state.try_into().unwrap();
    for (word, constant) in words.iter().zip(constants) {
        let [a, b, c, d, e, f, g, h] = s;
        let sum = (e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25))
            .wrapping_add(e & f ^ !e & g)
            .wrapping_add(h)
            .wrapping_add(*constant)
            .wrapping_add(*word);
        let other =
            (a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22)).wrapping_add(a & b ^ a & c ^ b & c);
        s = [sum.wrapping_add(other), a, b, c, d.wrapping_add(sum), e, f, g];
    }
    state.iter_mut().zip(s).for_each(|(state, s)| *state = state.wrapping_add(s));
}
