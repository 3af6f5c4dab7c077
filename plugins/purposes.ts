/** Cookies whose name shows their purpose. The edge and the loader use the same names. */
export const ANALYTICS_COOKIE = /^(?:_ga(?:$|_)|FPID$|FPLC$)/;
export const ADS_COOKIE = /^(?:_fbp$|_fbc$|_gcl_|FPAU$|FPGCL)/;
